import { createHash } from 'node:crypto';
import { parseJson } from '@sluice/shared/json';

/** A line to send. */
export interface SubmissionLine {
  readonly kind: 'submission';
  readonly path: '/v1/public/userGroups' | '/v1/public/users';
  readonly body: Buffer;
  readonly events: number;
  /** Submissions with the same key set properties of the same entity, so they are sent in order. */
  readonly orderKey: string | undefined;
  /** Always the same for the same line of the same file, so that repeated events are recognised. */
  readonly idempotencyKey: string;
}

/** The content of a line. */
export type LineContent =
  | SubmissionLine
  | { readonly kind: 'blank' }
  | { readonly kind: 'refused'; readonly reason: string };

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** Parses a line: a submission for a user if it has a `foreignId`, else for an organization. */
export function readSubmission(bytes: Buffer, number: number): LineContent {
  let text: string;
  try {
    text = utf8.decode(bytes);
  } catch {
    return { kind: 'refused', reason: 'is not UTF-8' };
  }
  if (text.trim() === '') return { kind: 'blank' };
  let content: unknown;
  try {
    content = parseJson(text);
  } catch {
    return { kind: 'refused', reason: 'is not JSON' };
  }
  if (typeof content !== 'object' || content === null || Array.isArray(content)) {
    return { kind: 'refused', reason: 'is not a JSON object' };
  }
  const { foreignId, foreignUserGroupId, events, properties } = content as Readonly<Record<string, unknown>>;
  const path = Object.hasOwn(content, 'foreignId') ? '/v1/public/users' : '/v1/public/userGroups';
  return {
    kind: 'submission',
    path,
    body: bytes,
    events: Array.isArray(events) ? events.length : 0,
    orderKey: properties === undefined ? undefined : JSON.stringify([path, foreignId ?? foreignUserGroupId]),
    idempotencyKey: createHash('sha256').update(`import\0${number}\0`).update(bytes).digest('base64url'),
  };
}
