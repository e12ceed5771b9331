import { randomUUIDv7 } from 'node:crypto';
import { entityHash, eventHash } from '@sluice/shared/row-hashes';
import { type ChangeRow, type EntityKind, EVENT_IDENTIFIERS, type EventRow } from '@sluice/shared/rows';
import { v5 as uuidV5 } from 'uuid';
import { partsTooLarge } from '../http/problems.ts';
import type { Pause } from '../http/turns.ts';
import type { Submission, SubmittedEvent } from '../submissions/submission.ts';
import { uuidV7TimeMs } from '../submissions/submission-limits.ts';
import type { OutgoingRow, RowGatherer } from './row-gatherer.ts';
import { fitsRecord, ROW_BYTES_MAX } from './row-size.ts';

/** The namespace of the UUIDs that are derived from an Idempotency-Key. Never change it: repeats would be new events. */
const IDEMPOTENCY_NAMESPACE = '5b0c2f5e-6f0b-4d64-9b0e-0c8f3d1f7a52';

/** Where and when a submission was accepted. */
export interface Acceptance {
  readonly workspace: string;
  /** In microseconds since 1970; see version-clock.ts. */
  readonly version: number;
  readonly idempotencyKey: string | undefined;
}

/**
 * Creates the rows of a valid submission. Everything that decides where a row is stored is decided here.
 *
 * @returns the uuids of the events, in order
 * @throws {Problem} `body_too_large` when an event or a property does not fit into a Kafka record
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
    gatherer.add({ topic: 'events', kind: 'events', hash: eventHash(uuid), line });
  }
  for (const row of changeRows(submission, acceptance)) {
    const waiting = pause();
    if (waiting) await waiting;
    const outgoing = outgoingChange(row);
    if (!fitsRecord(outgoing.line)) tooLarge.push(`properties.${row.property?.slice(0, 100)}`);
    gatherer.add(outgoing);
  }
  if (tooLarge.length > 0) throw partsTooLarge(tooLarge, `must be at most ${ROW_BYTES_MAX} bytes as a row`);
  return uuids;
}

/**
 * Creates the row that deletes a user. Every partition of `events` gets a copy, so that an event that follows it in its
 * partition was accepted after it: an event that is sent again after its user was deleted is then new, not a repeat.
 */
export function deletionRow(userId: string, workspace: string, version: number): OutgoingRow {
  const row = changeRow('user', userId, { workspace, version, idempotencyKey: undefined }, 'delete', randomUUIDv7());
  return { topic: 'events', kind: 'changes', hash: 'all', line: JSON.stringify(row) };
}

/** What all event rows of a submission have in common, as members of a JSON object. */
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

/** The fields of an event other than its uuid and times, as members of a JSON object. */
function eventContents(event: SubmittedEvent, { subjectFields }: CommonFields): string {
  let contents = `${textField('event', event.event)}${subjectFields}`;
  for (const { field, column } of EVENT_IDENTIFIERS) contents += textField(column, event[field]);
  return (
    `${contents}${jsonField('properties', event.properties)}${jsonField('context', event.context)}` +
    `${jsonField('traits', event.traits)}`
  );
}

/** Writes an EventRow as JSON. To build an object and encode it would take twice as long. */
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
 * Derives an event's uuid from the Idempotency-Key and from what the event holds. A key that is used again with another
 * body is another request, and none of its events may be taken for a repeat.
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
  // An event shows by itself that its user and organization exist. Without events, a row says so.
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
  const hash = entityHash(row.workspace_id, row.kind, row.id);
  return { topic: 'entities', kind: 'changes', hash, line: JSON.stringify(row) };
}
