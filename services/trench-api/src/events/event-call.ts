import { randomUUIDv7 } from 'node:crypto';
import { parseExactJson } from '@sluice/shared/text/json';
import { type Call, InvalidCall } from '@sluice/submissions/calls/call';
import { isEmptyArray, parseCall, UUID } from '@sluice/submissions/calls/call-parser';
import { messageUuid } from '@sluice/submissions/calls/message-uuid';
import { isJsonObject } from '@sluice/submissions/reading/json-object';
import type { ShownEvent } from './shown-event.ts';

type JsonObject = Readonly<Record<string, unknown>>;

/** The types that Trench documents. */
export const EVENT_TYPES = ['page', 'track', 'identify', 'group'] as const;

export interface EventCallOptions {
  readonly propertiesMax: number;
  readonly eventBytesMax: number;
  /** The wall clock, in milliseconds since 1970. */
  readonly now: () => number;
}

/** An event of a request, as it is sent on. */
export interface EventCall {
  /** The call for ingest-api, as JSON. */
  readonly json: string;
  /** The event as the response shows it. */
  readonly shown: ShownEvent;
}

/**
 * Makes a call of an event: the same calls as those of an import of Trench's table. It is checked as ingest-api checks it,
 * so that a request with a wrong event is refused as a whole.
 *
 * @throws {InvalidCall}
 */
export function eventCall(event: unknown, options: EventCallOptions): EventCall {
  if (!isJsonObject(event)) throw new InvalidCall('malformed', 'An event must be an object.');
  const now = options.now();
  const uuid = uuidOf(event);
  const members = callMembers(event, uuid, now);
  const call = parseCall(members, undefined, {}, options);
  const json = JSON.stringify(members);
  if (Buffer.byteLength(json) > options.eventBytesMax) {
    throw new InvalidCall('too_large', `An event must be at most ${options.eventBytesMax} bytes as JSON.`);
  }
  return { json, shown: shownEvent(call, event, uuid, now) };
}

/** Trench gives each event a new uuid. Of one with a messageId it is always the same, so that a retry is one event. */
function uuidOf({ messageId }: JsonObject): string {
  if (!isText(messageId)) return randomUUIDv7();
  return UUID.test(messageId) ? messageId.toLowerCase() : messageUuid('', messageId);
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value !== '';
}

function callMembers(event: JsonObject, uuid: string, now: number): JsonObject {
  const { messageId, userId, groupId, anonymousId, instanceId, properties, context } = event;
  const type = EVENT_TYPES.find((name) => name === (event['type'] ?? 'track'));
  if (type === undefined) throw new InvalidCall('type', `type must be one of: ${EVENT_TYPES.join(', ')}.`);
  // A repeat must not get another time than the event had.
  const time = isText(messageId) ? undefined : new Date(now).toISOString();
  const timestamp = (event['timestamp'] ?? '') === '' ? time : event['timestamp'];
  // Trench takes events of nobody. Each is of a person of its own.
  const hasSubject = [userId, groupId, anonymousId].some((id) => (id ?? '') !== '');
  return {
    ...{ type, messageId: uuid, userId, groupId, instanceId, timestamp, properties, context },
    [type === 'page' ? 'name' : 'event']: event['event'],
    anonymousId: hasSubject ? anonymousId : uuid,
    traits: traitsOf(event, type),
  };
}

/** Trench's client sends the traits of a user or organization as `properties.$set`. */
function traitsOf({ traits, properties }: JsonObject, type: (typeof EVENT_TYPES)[number]): unknown {
  const isEmpty = (traits ?? undefined) === undefined || isEmptyArray(traits);
  const hasTraits = isJsonObject(traits) ? Object.keys(traits).length > 0 : !isEmpty;
  if (hasTraits || (type !== 'identify' && type !== 'group')) return traits;
  const set = isJsonObject(properties) ? properties['$set'] : undefined;
  return isJsonObject(set) ? set : traits;
}

function shownEvent(call: Call, { traits, context }: JsonObject, uuid: string, now: number): ShownEvent {
  const { type, event, userId, groupId, anonymousId, timestamp } = call;
  return {
    ...{ uuid, type, event },
    ...(userId !== undefined && { userId }),
    ...(groupId !== undefined && { groupId }),
    ...(anonymousId !== undefined && anonymousId !== uuid && { anonymousId }),
    ...(call.instanceId !== undefined && { instanceId: call.instanceId }),
    // As they are stored: those of a page have its name.
    ...(call.properties !== undefined && { properties: parseExactJson(call.properties) as JsonObject }),
    ...(isJsonObject(traits) && { traits }),
    ...(isJsonObject(context) && { context }),
    timestamp: new Date(timestamp ?? now).toISOString(),
    parsedAt: new Date(now).toISOString(),
  };
}
