import { randomUUIDv7 } from 'node:crypto';
import { crc32 } from 'node:zlib';
import type { ChangeRow, EntityKind, EventRow, MessageKind } from '@sluice/shared/rows';
import { v5 as uuidV5 } from 'uuid';
import { encodeJson } from './json-object.ts';
import type { Submission, SubmittedEvent } from './submission.ts';
import { uuidV7TimeMs } from './submission-limits.ts';

/** The namespace of the UUIDs that are derived from an Idempotency-Key. Never change it: repeats would be new events. */
const IDEMPOTENCY_NAMESPACE = '5b0c2f5e-6f0b-4d64-9b0e-0c8f3d1f7a52';

/** A row on its way to Kafka. */
export interface OutgoingRow {
  readonly topic: 'events' | 'entities';
  readonly kind: MessageKind;
  /** Chooses the partition: rows of equal hash share one. `all` puts a copy into every partition of the topic. */
  readonly hash: number | 'all';
  /** One line of JSON without its line feed. */
  readonly line: string;
}

/** Where and when a submission was accepted. */
export interface Acceptance {
  readonly workspace: string;
  /** In microseconds since 1970; see version-clock.ts. */
  readonly version: number;
  readonly idempotencyKey: string | undefined;
}

export interface SubmissionRows {
  readonly rows: readonly OutgoingRow[];
  /** One for each event, in order. */
  readonly uuids: readonly string[];
}

/** Turns a valid submission into rows. All that decides where a row ends up is settled here and never again. */
export function submissionRows(submission: Submission, acceptance: Acceptance): SubmissionRows {
  const rows: OutgoingRow[] = [];
  const uuids: string[] = [];
  const whole = { ...acceptance, ...commonFields(submission, acceptance) };
  for (const [index, event] of submission.events.entries()) {
    const uuid = event.uuid ?? derivedUuid(acceptance, index) ?? randomUUIDv7();
    uuids.push(uuid);
    // The last digits: the first ones of a UUIDv7 are the time.
    const hash = Number.parseInt(uuid.slice(-8), 16);
    rows.push({ topic: 'events', kind: 'events', hash, line: eventLine(event, uuid, whole) });
  }
  for (const row of changeRows(submission, acceptance)) rows.push(outgoingChange(row));
  return { rows, uuids };
}

/**
 * The deletion of a user. Every partition of `events` gets a copy, so that whatever an event's partition holds after
 * it was accepted after it: an event that is sent again once its user is deleted is then new, not a repeat.
 */
export function deletionRow(userId: string, { workspace, version }: Acceptance): OutgoingRow {
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

/** An EventRow of rows.ts as JSON, put together from texts: to build and encode an object would cost twice as much. */
function eventLine(event: SubmittedEvent, uuid: string, common: Acceptance & CommonFields): string {
  const { version, idempotencyKey, workspaceField, subjectFields } = common;
  const ownTimeMs = event.timestamp ?? uuidV7TimeMs(event.uuid);
  const repeatable = event.uuid !== undefined || idempotencyKey !== undefined;
  const timestamp = ownTimeMs ?? Math.floor(version / 1_000);
  const stamped = ownTimeMs === undefined && repeatable ? ',"stamped":1' : '';
  return (
    `{${workspaceField},"timestamp":${timestamp},"uuid":"${uuid}"${textField('event', event.event)}${subjectFields}` +
    `${textField('anonymous_id', event.anonymousId)}${textField('instance_id', event.instanceId)}` +
    `${jsonField('properties', event.properties)}${jsonField('context', event.context)}` +
    `${jsonField('traits', event.traits)},"received_at":${version}${stamped}}`
  );
}

function textField(name: keyof EventRow, value: string | undefined): string {
  return value === undefined ? '' : `,"${name}":${JSON.stringify(value)}`;
}

function jsonField(name: keyof EventRow, json: string | undefined): string {
  return json === undefined ? '' : `,"${name}":${json}`;
}

function derivedUuid({ workspace, idempotencyKey: key }: Acceptance, index: number): string | undefined {
  return key === undefined ? undefined : uuidV5(`${workspace}\0${key}\0${index}`, IDEMPOTENCY_NAMESPACE);
}

function changeRows({ subject, userId, groupId, events, properties }: Submission, acceptance: Acceptance): ChangeRow[] {
  const rows: ChangeRow[] = [];
  if (events.length > 0 && properties === undefined) return rows;
  const changeId = randomUUIDv7();
  // An event says by itself whom it was about; without one, that they were named has to be said.
  if (events.length === 0) {
    if (userId !== undefined) rows.push(changeRow('user', userId, acceptance, 'seen', changeId));
    if (groupId !== undefined) rows.push(changeRow('organization', groupId, acceptance, 'seen', changeId));
  }
  const id = subject === 'user' ? userId : groupId;
  if (id === undefined) return rows;
  for (const [property, value] of Object.entries(properties ?? {})) {
    rows.push(
      value === null
        ? { ...changeRow(subject, id, acceptance, 'remove', changeId), property }
        : { ...changeRow(subject, id, acceptance, 'set', changeId), property, value: encodeJson(value) },
    );
  }
  return rows;
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
