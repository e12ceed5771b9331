import { randomUUIDv7 } from 'node:crypto';
import { crc32 } from 'node:zlib';
import { Problem } from '@sluice/shared/http/problem';
import type { ChangeRow, EntityKind, EventRow } from '@sluice/shared/rows';
import { v5 as uuidV5 } from 'uuid';
import { type OutgoingRow, ROW_BYTES_MAX, type RowGatherer } from './row-packing.ts';
import type { Submission, SubmittedEvent } from './submission.ts';
import { uuidV7TimeMs } from './submission-limits.ts';
import type { Pause } from './turns.ts';

/** The namespace of the UUIDs that are derived from an Idempotency-Key. Never change it: repeats would be new events. */
const IDEMPOTENCY_NAMESPACE = '5b0c2f5e-6f0b-4d64-9b0e-0c8f3d1f7a52';

/** Where and when a submission was accepted. */
export interface Acceptance {
  readonly workspace: string;
  /** In microseconds since 1970; see version-clock.ts. */
  readonly version: number;
  readonly idempotencyKey: string | undefined;
}

/** What a row holds besides the texts of its submission, in bytes at most. */
const ROW_OVERHEAD_BYTES = 250;

/** What the rows of a submission come to, in bytes: each repeats the identifiers. It may be too high, never too low. */
export function estimateRowBytes({ userId, groupId, events, properties }: Submission, bodyBytes: number): number {
  const identifiers = Buffer.byteLength(JSON.stringify([userId, groupId]));
  return bodyBytes + (events.length + (properties?.length ?? 0) + 2) * (ROW_OVERHEAD_BYTES + identifiers);
}

/**
 * Turns a valid submission into rows. All that decides where a row ends up is settled here and never again.
 *
 * @returns the uuids of the events, in order
 * @throws {Problem} `body_too_large` when an event or a property does not fit into a record of Kafka
 */
export async function gatherRows(
  submission: Submission,
  acceptance: Acceptance,
  gatherer: RowGatherer,
  pause: Pause,
): Promise<string[]> {
  const uuids: string[] = [];
  const tooLarge: string[] = [];
  const common = commonFields(submission, acceptance);
  for (const [index, event] of submission.events.entries()) {
    const waiting = pause();
    if (waiting) await waiting;
    const contents = eventContents(event, common);
    const uuid = event.uuid ?? derivedUuid(acceptance, index, contents, event.timestamp) ?? randomUUIDv7();
    uuids.push(uuid);
    const line = eventLine(event, uuid, contents, acceptance, common);
    if (!fitsRecord(line)) tooLarge.push(`events.${index}`);
    // All of the uuid: the random part of version 1 and 6 is elsewhere than that of 4 and 7.
    gatherer.add({ topic: 'events', kind: 'events', hash: crc32(uuid), line });
  }
  for (const row of changeRows(submission, acceptance)) {
    const waiting = pause();
    if (waiting) await waiting;
    const outgoing = outgoingChange(row);
    if (!fitsRecord(outgoing.line)) tooLarge.push(`properties.${row.property?.slice(0, 100)}`);
    gatherer.add(outgoing);
  }
  if (tooLarge.length === 0) return uuids;
  const message = `must be at most ${ROW_BYTES_MAX} bytes when it is written out`;
  const errors = tooLarge.map((path) => ({ path, code: 'too_large', message }));
  throw new Problem('body_too_large', 'A part of the body is too large.', { errors });
}

/** Numbers may take more bytes when they are written out than they did in the body: `1e20`. */
function fitsRecord(line: string): boolean {
  return line.length <= ROW_BYTES_MAX / 3 || Buffer.byteLength(line) <= ROW_BYTES_MAX;
}

/**
 * The deletion of a user. Every partition of `events` gets a copy, so that whatever an event's partition holds after
 * it was accepted after it: an event that is sent again once its user is deleted is then new, not a repeat.
 */
export function deletionRow(userId: string, workspace: string, version: number): OutgoingRow {
  const row = changeRow('user', userId, { workspace, version, idempotencyKey: undefined }, 'delete', randomUUIDv7());
  return { topic: 'events', kind: 'changes', hash: 'all', line: JSON.stringify(row) };
}

/** What the rows of one submission begin with, and whom its events are about, as members of JSON objects. */
interface CommonFields {
  readonly workspaceField: string;
  readonly subjectFields: string;
}

function commonFields({ userId, groupId }: Submission, { workspace }: Acceptance): CommonFields {
  return {
    workspaceField: `"workspace_id":${JSON.stringify(workspace)}`,
    subjectFields: textField('user_id', userId) + textField('group_id', groupId),
  };
}

/** The fields of an event other than its identity and times, as members of a JSON object. */
function eventContents(event: SubmittedEvent, { subjectFields }: CommonFields): string {
  return (
    `${textField('event', event.event)}${subjectFields}` +
    `${textField('anonymous_id', event.anonymousId)}${textField('instance_id', event.instanceId)}` +
    `${jsonField('properties', event.properties)}${jsonField('context', event.context)}` +
    `${jsonField('traits', event.traits)}`
  );
}

/** An EventRow of rows.ts as JSON, put together from texts: to build and encode an object would cost twice as much. */
function eventLine(
  event: SubmittedEvent,
  uuid: string,
  contents: string,
  { version, idempotencyKey }: Acceptance,
  { workspaceField }: CommonFields,
): string {
  const ownTimeMs = event.timestamp ?? uuidV7TimeMs(event.uuid);
  const repeatable = event.uuid !== undefined || idempotencyKey !== undefined;
  const timestamp = ownTimeMs ?? Math.floor(version / 1_000);
  const stamped = ownTimeMs === undefined && repeatable ? ',"stamped":1' : '';
  return `{${workspaceField},"timestamp":${timestamp},"uuid":"${uuid}"${contents},"received_at":${version}${stamped}}`;
}

function textField(name: keyof EventRow, value: string | undefined): string {
  return value === undefined ? '' : `,"${name}":${JSON.stringify(value)}`;
}

function jsonField(name: keyof EventRow, json: string | undefined): string {
  return json === undefined ? '' : `,"${name}":${json}`;
}

/**
 * The uuid of an event that came with an Idempotency-Key. It is made from what the event holds as well: the key used
 * again with another body is another request, of which nothing may be taken for a repeat.
 */
function derivedUuid(
  { workspace, idempotencyKey: key }: Acceptance,
  index: number,
  contents: string,
  timestamp: number | undefined,
): string | undefined {
  if (key === undefined) return undefined;
  return uuidV5(`${workspace}\0${key}\0${index}\0${timestamp ?? ''}\0${contents}`, IDEMPOTENCY_NAMESPACE);
}

function* changeRows(submission: Submission, acceptance: Acceptance): Generator<ChangeRow> {
  const { subject, userId, groupId, events, properties } = submission;
  if (events.length > 0 && properties === undefined) return;
  const changeId = randomUUIDv7();
  // An event says by itself whom it was about; without one, that they were named has to be said.
  if (events.length === 0) {
    if (userId !== undefined) yield changeRow('user', userId, acceptance, 'seen', changeId);
    if (groupId !== undefined) yield changeRow('organization', groupId, acceptance, 'seen', changeId);
  }
  const id = subject === 'user' ? userId : groupId;
  if (id === undefined) return;
  for (const { name: property, json } of properties ?? []) {
    yield json === undefined
      ? { ...changeRow(subject, id, acceptance, 'remove', changeId), property }
      : { ...changeRow(subject, id, acceptance, 'set', changeId), property, value: json };
  }
}

function changeRow(
  kind: EntityKind,
  id: string,
  { workspace, version }: Acceptance,
  operation: ChangeRow['operation'],
  changeId: string,
): ChangeRow {
  return { workspace_id: workspace, kind, id, operation, version, change_id: changeId };
}

function outgoingChange(row: ChangeRow): OutgoingRow {
  return { topic: 'entities', kind: 'changes', hash: crc32(`${row.kind}\0${row.id}`), line: JSON.stringify(row) };
}
