import { randomUUIDv7 } from 'node:crypto';
import type { EventRow } from '@sluice/shared/rows';
import { EVENT_IDENTIFIERS, type EventIdentifier } from '@sluice/shared/rows/event-identifiers';
import { eventHash } from '@sluice/shared/rows/row-hashes';
import { v5 as uuidV5 } from 'uuid';
import type { Acceptance } from './acceptance.ts';
import type { OutgoingRow } from './partition-rows.ts';

/** The namespace of the UUIDs that are derived from an Idempotency-Key. Never change it: repeats would be new events. */
const IDEMPOTENCY_NAMESPACE = '5b0c2f5e-6f0b-4d64-9b0e-0c8f3d1f7a52';

/** What an event row is made of. Objects are JSON text. */
export interface EventContents extends Partial<Record<EventIdentifier, string | undefined>> {
  readonly event: string;
  readonly type?: string | undefined;
  readonly properties: string | undefined;
  readonly context: string | undefined;
  readonly traits: string | undefined;
}

export interface EventRowOptions {
  /** The fields of its user and organization; see {@link subjectFields}. */
  readonly subject: string;
  /** See {@link Acceptance}. */
  readonly version: number;
  /** The uuid; `undefined`: one that is derived from the Idempotency-Key, else a new one. */
  readonly uuid: string | undefined;
  /** The time of the event itself, in milliseconds since 1970; `undefined`: the time of receipt. */
  readonly ownTimeMs: number | undefined;
  /** The timestamp that the event came with; it is part of a derived uuid. */
  readonly timestamp: number | undefined;
  /** Its position in the request. */
  readonly index: number;
}

/** Returns the fields of a user and an organization, as members of a JSON object. */
export function subjectFields(userId: string | undefined, groupId: string | undefined): string {
  return textField('user_id', userId) + textField('group_id', groupId);
}

/** Creates the rows of the events of one request. */
export class EventRows {
  readonly #acceptance: Omit<Acceptance, 'version'>;
  readonly #workspaceField: string;

  constructor(acceptance: Omit<Acceptance, 'version'>) {
    this.#acceptance = acceptance;
    this.#workspaceField = `"workspace_id":${JSON.stringify(acceptance.workspace)}`;
  }

  /** Writes an EventRow as JSON. To build an object and encode it would take twice as long. */
  create(event: EventContents, options: EventRowOptions): { uuid: string; row: OutgoingRow } {
    const { subject, version, ownTimeMs, timestamp, index } = options;
    const { idempotencyKey } = this.#acceptance;
    const contents = this.#contents(event, subject);
    const uuid = options.uuid ?? this.#derivedUuid(index, contents, timestamp) ?? randomUUIDv7();
    const repeatable = options.uuid !== undefined || idempotencyKey !== undefined;
    const time = ownTimeMs ?? Math.floor(version / 1_000);
    const stamped = ownTimeMs === undefined && repeatable ? ',"stamped":1' : '';
    const line = `{${this.#workspaceField},"timestamp":${time},"uuid":"${uuid}"${contents},"received_at":${version}${stamped}}`;
    return { uuid, row: { topic: 'events', kind: 'events', hash: eventHash(uuid), line } };
  }

  /** The fields of an event other than its uuid and times, as members of a JSON object. */
  #contents(event: EventContents, subject: string): string {
    // `track` is the default of the column.
    const type = event.type === 'track' ? undefined : event.type;
    let contents = `${textField('event', event.event)}${textField('type', type)}${subject}`;
    for (const { field, column } of EVENT_IDENTIFIERS) contents += textField(column, event[field]);
    return (
      `${contents}${jsonField('properties', event.properties)}${jsonField('context', event.context)}` +
      `${jsonField('traits', event.traits)}`
    );
  }

  /**
   * Derives an event's uuid from the Idempotency-Key and from what the event holds. A key that is used again with another
   * body is another request, and none of its events may be taken for a repeat.
   */
  #derivedUuid(index: number, contents: string, timestamp: number | undefined): string | undefined {
    const { workspace, idempotencyKey: key } = this.#acceptance;
    if (key === undefined) return undefined;
    return uuidV5(`${workspace}\0${key}\0${index}\0${timestamp ?? ''}\0${contents}`, IDEMPOTENCY_NAMESPACE);
  }
}

function textField(name: keyof EventRow, value: string | undefined): string {
  return value === undefined ? '' : `,"${name}":${JSON.stringify(value)}`;
}

function jsonField(name: keyof EventRow, json: string | undefined): string {
  return json === undefined ? '' : `,"${name}":${json}`;
}
