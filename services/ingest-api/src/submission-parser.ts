import { parseTimestamp } from '@sluice/shared/timestamp';
import { z } from 'zod';
import { isJsonObject, isSoundJson, jsonObjectText } from './json-object.ts';
import type { SubmittedEvent } from './submission.ts';
import {
  EVENT_NAME_LENGTH_MAX,
  IDENTIFIER_LENGTH_MAX,
  type SubmissionLimits,
  TIMESTAMP_AHEAD_MS_MAX,
  TIMESTAMP_MS_MIN,
  uuidV7TimeMs,
} from './submission-limits.ts';

type Fields = Readonly<Record<string, unknown>>;

interface Contents {
  events: SubmittedEvent[] | undefined;
  properties: Fields | undefined;
}

const UUID = z.regexes.uuid();

/**
 * Parsers of the bodies of the two submit routes, for `z.withParser`: each gives what its schema in submission.ts gives,
 * or `z.INVALID`, upon which the schema itself decides. What they take is valid; what they do not take may be valid,
 * too. By measurement an event costs a fifth of what zod takes for it, compiled or not.
 */
export function createSubmissionParser({ eventsMax, now }: SubmissionLimits) {
  function parseContents(contents: Contents, name: string, value: unknown): boolean {
    if (value === null && (name === 'events' || name === 'properties')) return true;
    if (name === 'events') {
      contents.events = parseEvents(value, eventsMax, now() + TIMESTAMP_AHEAD_MS_MAX);
      return contents.events !== undefined;
    }
    if (name !== 'properties' || !isJsonObject(value) || !isSoundJson(value)) return false;
    contents.properties = value;
    return true;
  }

  return {
    userGroup(body: unknown) {
      if (!isJsonObject(body)) return z.INVALID;
      const { foreignUserGroupId, foreignUserId } = body;
      if (!isText(foreignUserGroupId, IDENTIFIER_LENGTH_MAX)) return z.INVALID;
      if (!isAbsent(foreignUserId) && !isText(foreignUserId, IDENTIFIER_LENGTH_MAX)) return z.INVALID;
      const contents: Contents = { events: undefined, properties: undefined };
      for (const name of Object.keys(body)) {
        if (name === 'foreignUserGroupId' || name === 'foreignUserId') continue;
        if (!parseContents(contents, name, body[name])) return z.INVALID;
      }
      return { foreignUserGroupId, foreignUserId: foreignUserId ?? undefined, ...contents };
    },
    user(body: unknown) {
      if (!isJsonObject(body)) return z.INVALID;
      const { foreignId } = body;
      if (!isText(foreignId, IDENTIFIER_LENGTH_MAX)) return z.INVALID;
      const contents: Contents = { events: undefined, properties: undefined };
      for (const name of Object.keys(body)) {
        if (name === 'foreignId') continue;
        if (!parseContents(contents, name, body[name])) return z.INVALID;
      }
      return { foreignId, ...contents };
    },
  };
}

function parseEvents(value: unknown, eventsMax: number, timestampMsMax: number): SubmittedEvent[] | undefined {
  if (!Array.isArray(value) || value.length > eventsMax) return undefined;
  const events: SubmittedEvent[] = [];
  for (const item of value) {
    const event = parseEvent(item, timestampMsMax);
    if (!event) return undefined;
    events.push(event);
  }
  return events;
}

function parseEvent(value: unknown, timestampMsMax: number): SubmittedEvent | undefined {
  if (!isJsonObject(value) || !isText(value['event'], EVENT_NAME_LENGTH_MAX)) return undefined;
  const event: SubmittedEvent = {
    event: value['event'],
    type: undefined,
    uuid: undefined,
    timestamp: undefined,
    anonymousId: undefined,
    instanceId: undefined,
    properties: undefined,
    context: undefined,
    traits: undefined,
  };
  for (const name of Object.keys(value)) {
    if (name !== 'event' && !parseField(event, name, value[name])) return undefined;
  }
  const ms = event.timestamp ?? uuidV7TimeMs(event.uuid);
  return ms === undefined || (ms >= TIMESTAMP_MS_MIN && ms <= timestampMsMax) ? event : undefined;
}

/** Whether the event may have the field; it has it then. */
function parseField(event: SubmittedEvent, name: string, value: unknown): boolean {
  switch (name) {
    case 'type':
      if (value === 'track') event.type = value;
      return value === 'track' || value === null;
    case 'uuid':
      if (typeof value === 'string' && UUID.test(value)) event.uuid = value.toLowerCase();
      return value === null || event.uuid !== undefined;
    case 'timestamp':
      if (typeof value === 'string') event.timestamp = parseTimestamp(value)?.ms;
      return value === null || event.timestamp !== undefined;
    case 'anonymousId':
    case 'instanceId':
      if (isText(value, IDENTIFIER_LENGTH_MAX)) event[name] = value;
      return value === null || event[name] !== undefined;
    case 'properties':
    case 'context':
    case 'traits':
      if (value !== null) event[name] = jsonObjectText(value);
      return value === null || event[name] !== undefined;
    default:
      return false;
  }
}

/** A longer text may be valid, too: its code points are not counted here. */
function isText(value: unknown, lengthMax: number): value is string {
  return typeof value === 'string' && value !== '' && value.length <= lengthMax && value.isWellFormed();
}

function isAbsent(value: unknown): value is null | undefined {
  return value === null || value === undefined;
}
