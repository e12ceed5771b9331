import { createHash } from 'node:crypto';
import { type Format, type LineContent, type LineToSend, readJsonObject } from './format.ts';

/** Lines that are bodies of the native routes. Each is a request of its own. */
export const nativeFormat: Format = {
  unit: 'submissions',
  readLine: readSubmission,
  createGatherer: () => ({
    add: (line) => [{ lines: [line], orderKey: line.orderKey, bytes: line.body.length }],
    rest: () => [],
  }),
  requestOf: ([line]) => line,
  rejectedIn: () => new Map(),
};

/** Reads a submission: for a user if it has a `foreignId`, else for an organization. */
function readSubmission(bytes: Buffer, number: number): LineContent {
  const content = readJsonObject(bytes);
  if (content.kind !== 'object') return content;
  const { foreignId, foreignUserGroupId, events, properties } = content.value;
  const path = Object.hasOwn(content.value, 'foreignId') ? '/v1/public/users' : '/v1/public/userGroups';
  return {
    kind: 'line',
    number,
    path,
    body: bytes,
    events: Array.isArray(events) ? events.length : 0,
    orderKey: properties === undefined ? undefined : JSON.stringify([path, foreignId ?? foreignUserGroupId]),
    idempotencyKey: lineHash(bytes, number).toString('base64url'),
  } satisfies LineToSend;
}

/** Always the same for the same line of the same file, so that a repeated line is recognised. */
export function lineHash(bytes: Buffer, number: number): Buffer {
  return createHash('sha256').update(`import\0${number}\0`).update(bytes).digest();
}
