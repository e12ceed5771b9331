import { randomUUIDv7 } from 'node:crypto';
import { crc32 } from 'node:zlib';
import type { ChangeRow, EntityKind, EventRow, MessageKind } from '@sluice/shared/rows';
import { v5 as uuidV5 } from 'uuid';
import { encodeJson } from './json-object.ts';
import { type Submission, type SubmittedEvent, uuidV7TimeMs } from './submission.ts';

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
  const events = submission.events.map((event, index) => eventRow(submission, event, index, acceptance));
  return {
    rows: [...events.map(outgoingEvent), ...changeRows(submission, acceptance).map(outgoingChange)],
    uuids: events.map(({ uuid }) => uuid),
  };
}

/**
 * The deletion of a user. Every partition of `events` gets a copy, so that whatever an event's partition holds after
 * it was accepted after it: an event that is sent again once its user is deleted is then new, not a repeat.
 */
export function deletionRow(userId: string, { workspace, version }: Acceptance): OutgoingRow {
  const row = changeRow('user', userId, { workspace, version, idempotencyKey: undefined }, 'delete', randomUUIDv7());
  return { topic: 'events', kind: 'changes', hash: 'all', line: JSON.stringify(row) };
}

function eventRow(
  { userId, groupId }: Submission,
  event: SubmittedEvent,
  index: number,
  { workspace, version, idempotencyKey }: Acceptance,
): EventRow {
  const receivedMs = Math.floor(version / 1_000);
  const uuid = event.uuid ?? derivedUuid(workspace, idempotencyKey, index) ?? randomUUIDv7();
  const ownTimeMs = event.timestamp ?? uuidV7TimeMs(event.uuid);
  const repeatable = event.uuid !== undefined || idempotencyKey !== undefined;
  return {
    workspace_id: workspace,
    timestamp: ownTimeMs ?? receivedMs,
    uuid,
    event: event.event,
    ...(userId !== undefined && { user_id: userId }),
    ...(groupId !== undefined && { group_id: groupId }),
    ...(event.anonymousId !== undefined && { anonymous_id: event.anonymousId }),
    ...(event.instanceId !== undefined && { instance_id: event.instanceId }),
    ...(event.properties && { properties: event.properties }),
    ...(event.context && { context: event.context }),
    ...(event.traits && { traits: event.traits }),
    received_at: version,
    ...(ownTimeMs === undefined && repeatable && { stamped: 1 as const }),
  };
}

function derivedUuid(workspace: string, key: string | undefined, index: number): string | undefined {
  return key === undefined ? undefined : uuidV5(`${workspace}\0${key}\0${index}`, IDEMPOTENCY_NAMESPACE);
}

function changeRows({ subject, userId, groupId, events, properties }: Submission, acceptance: Acceptance): ChangeRow[] {
  const changeId = randomUUIDv7();
  const rows: ChangeRow[] = [];
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

function outgoingEvent(row: EventRow): OutgoingRow {
  // The last digits: the first ones of a UUIDv7 are the time.
  return { topic: 'events', kind: 'events', hash: Number.parseInt(row.uuid.slice(-8), 16), line: encodeJson(row) };
}

function outgoingChange(row: ChangeRow): OutgoingRow {
  return { topic: 'entities', kind: 'changes', hash: crc32(`${row.kind}\0${row.id}`), line: JSON.stringify(row) };
}
