import { EVENT_IDENTIFIERS, type EventIdentifier } from '@sluice/shared/rows/event-identifiers';
import { parseTimestamp } from '@sluice/shared/text/timestamp';
import { z } from 'zod';
import { isJsonObject, jsonObjectText } from './json-object.ts';
import type { SubmittedEvent } from './submission.ts';
import { EVENT_NAME_LENGTH_MAX, IDENTIFIER_LENGTH_MAX, TIMESTAMP_MS_MIN, uuidV7TimeMs } from './submission-limits.ts';

const UUID = z.regexes.uuid();

const IDENTIFIER_FIELDS: ReadonlySet<string> = new Set(EVENT_IDENTIFIERS.map(({ field }) => field));

/** Every event starts as a copy, so that all have the same shape in V8. */
const EMPTY_EVENT: SubmittedEvent = {
  event: '',
  type: undefined,
  uuid: undefined,
  timestamp: undefined,
  ...(Object.fromEntries(EVENT_IDENTIFIERS.map(({ field }) => [field, undefined])) as Record<
    EventIdentifier,
    undefined
  >),
  properties: undefined,
  context: undefined,
  traits: undefined,
};

/**
 * Parses an event, whose objects may be an `ObjectText`. It returns `undefined` for an event that it does not know to be
 * valid: then the schema in submission.ts decides. With the schema alone, ingest-api would take almost twice the CPU time.
 *
 * @param timestampMsMax the latest timestamp that is accepted
 */
export function parseEvent(value: unknown, timestampMsMax: number): SubmittedEvent | undefined {
  if (!isJsonObject(value) || !isText(value['event'], EVENT_NAME_LENGTH_MAX)) return undefined;
  const event = { ...EMPTY_EVENT, event: value['event'] };
  for (const name of Object.keys(value)) {
    if (name !== 'event' && !parseField(event, name, value[name])) return undefined;
  }
  return acceptsTime(event, timestampMsMax) ? event : undefined;
}

/** Whether the time of an event, if it has one, is neither too early nor too late. */
function acceptsTime({ timestamp, uuid }: SubmittedEvent, timestampMsMax: number): boolean {
  const ms = timestamp ?? uuidV7TimeMs(uuid);
  return ms === undefined || (ms >= TIMESTAMP_MS_MIN && ms <= timestampMsMax);
}

/** Sets a field of the event, and returns whether the field exists and the value is valid for it. */
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
    case 'properties':
    case 'context':
    case 'traits':
      if (value !== null) event[name] = jsonObjectText(value);
      return value === null || event[name] !== undefined;
    default:
      return IDENTIFIER_FIELDS.has(name) && parseIdentifier(event, name as EventIdentifier, value);
  }
}

function parseIdentifier(event: SubmittedEvent, field: EventIdentifier, value: unknown): boolean {
  if (isText(value, IDENTIFIER_LENGTH_MAX)) event[field] = value;
  return value === null || event[field] !== undefined;
}

/** Whether the value is a valid text. A longer one may be valid, too: its code points are not counted here. */
export function isText(value: unknown, lengthMax: number): value is string {
  return typeof value === 'string' && value !== '' && value.length <= lengthMax && value.isWellFormed();
}
