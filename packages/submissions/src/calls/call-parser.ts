import { EVENT_IDENTIFIERS, type EventIdentifier } from '@sluice/shared/event-identifiers';
import { parseTimestamp } from '@sluice/shared/timestamp';
import { z } from 'zod';
import {
  encodeJson,
  errorOfMember,
  errorOfObject,
  isJsonObject,
  jsonObjectText,
  NUMBER_TOO_LARGE,
  ObjectText,
} from '../reading/json-object.ts';
import { type SubmittedProperty, textError, tooManyProperties } from '../reading/submission.ts';
import {
  EVENT_NAME_LENGTH_MAX,
  IDENTIFIER_LENGTH_MAX,
  TIMESTAMP_AHEAD_MS_MAX,
  TIMESTAMP_MS_MIN,
  uuidV7TimeMs,
} from '../reading/submission-limits.ts';
import { CALL_TYPES, type Call, type CallType, MESSAGE_ID_LENGTH_MAX } from './call.ts';
import { CallContext } from './call-context.ts';

type JsonObject = Readonly<Record<string, unknown>>;

export const UUID = z.regexes.uuid();

/** `@segment/analytics-node` writes the time of the call into its messageIds. */
const NODE_MESSAGE_ID = /^node-next-(\d{13})-/;

/** What makes a call one that cannot be taken. Its message is a sentence. */
export class InvalidCall extends Error {
  override readonly name = 'InvalidCall';
}

export interface CallParserOptions {
  readonly propertiesMax: number;
  /** The server's clock, in milliseconds since 1970. */
  readonly now: () => number;
}

/**
 * Makes a call of its JSON value: its event with everything that is stored, and the properties that it sets. `null` counts
 * as absent, and so does an empty identifier. A number as an identifier is written as JSON.stringify writes it.
 *
 * @param type the type that the route says; `undefined`: the call says it
 * @param batchContext lies under the call's own context, name by name
 * @throws {InvalidCall}
 */
export function parseCall(
  value: unknown,
  type: CallType | undefined,
  batchContext: JsonObject,
  options: CallParserOptions,
): Call {
  if (!isJsonObject(value)) throw new InvalidCall('A call must be an object.');
  const callType = type ?? typeOf(value);
  const context = new CallContext(objectOf('context', value['context']), batchContext);
  const messageId = identifierOf('messageId', value['messageId'], MESSAGE_ID_LENGTH_MAX);
  const uuid = messageId !== undefined && UUID.test(messageId) ? messageId.toLowerCase() : undefined;
  const timestamp = timeOf(value, messageId, uuid, options.now());
  const subject = subjectOf(value, context);
  const traits = traitsOf(value, callType, context);
  return {
    type: callType,
    event: nameOf(value, callType),
    messageId,
    uuid,
    timestamp,
    ...subject,
    properties: propertiesText(value, callType, subject.previousId),
    context: contextText(context.with(uuid === undefined ? messageId : undefined)),
    traits: objectText('traits', traits),
    changed: callType === 'group' ? 'organization' : 'user',
    changes: changesOf(callType, subject, traits, options.propertiesMax),
  };
}

function typeOf({ type }: JsonObject): CallType {
  const known = CALL_TYPES.find((name) => name === type);
  if (!known) throw new InvalidCall(`type must be one of: ${CALL_TYPES.join(', ')}.`);
  return known;
}

/** Returns the user that a `userId` names; `undefined` when it is no identifier. */
export function userIdOf(userId: unknown): string | undefined {
  try {
    return identifierOf('userId', userId, IDENTIFIER_LENGTH_MAX);
  } catch {
    return undefined;
  }
}

interface Subject extends Partial<Record<EventIdentifier, string | undefined>> {
  readonly userId: string | undefined;
  readonly groupId: string | undefined;
  readonly previousId: string | undefined;
}

function subjectOf(value: JsonObject, context: CallContext): Subject {
  const subject: Record<string, string | undefined> = {};
  for (const { field } of EVENT_IDENTIFIERS) subject[field] = identifierOf(field, value[field], IDENTIFIER_LENGTH_MAX);
  subject['userId'] = identifierOf('userId', value['userId'], IDENTIFIER_LENGTH_MAX);
  subject['groupId'] =
    identifierOf('groupId', value['groupId'], IDENTIFIER_LENGTH_MAX) ??
    identifierOf('groupId', context.get('groupId'), IDENTIFIER_LENGTH_MAX);
  subject['previousId'] = identifierOf('previousId', value['previousId'], IDENTIFIER_LENGTH_MAX);
  const { userId, anonymousId, groupId, previousId } = subject;
  if ((userId ?? anonymousId ?? groupId ?? previousId) === undefined) {
    throw new InvalidCall('One of userId, anonymousId, groupId and previousId is needed.');
  }
  return subject as unknown as Subject;
}

/** Returns what is given as an identifier: a text, or a number as JSON.stringify writes it. @throws {InvalidCall} */
export function identifierOf(name: string, given: unknown, lengthMax: number): string | undefined {
  if (given === undefined || given === null || given === '') return undefined;
  // JSON.stringify writes an infinite number as null: all of them would be one user, or repeats of one event.
  if (typeof given === 'number' && !Number.isFinite(given)) throw new InvalidCall(`${name} is ${NUMBER_TOO_LARGE}.`);
  const text = typeof given === 'number' || JSON.isRawJSON(given) ? JSON.stringify(given) : given;
  if (typeof text !== 'string') throw new InvalidCall(`${name} must be a string.`);
  const error = textError(text, lengthMax);
  if (error !== undefined) throw new InvalidCall(`${name} ${error}.`);
  return text;
}

/** Returns what is given as an object, parsed or not. @throws {InvalidCall} */
export function objectOf(name: string, given: unknown): JsonObject | ObjectText | undefined {
  if (given === undefined || given === null) return undefined;
  if (!isJsonObject(given)) throw new InvalidCall(`${name} must be an object.`);
  return given;
}

function membersOf(object: JsonObject | ObjectText | undefined): JsonObject | undefined {
  return object instanceof ObjectText ? object.parse() : object;
}

/** Returns the JSON text of an object. @throws {InvalidCall} */
export function objectText(name: string, object: JsonObject | ObjectText | undefined): string | undefined {
  if (object === undefined) return undefined;
  const text = jsonObjectText(object);
  if (text === undefined) throw new InvalidCall(`${name} ${errorOfObject(object as JsonObject)}.`);
  return text;
}

function contextText(context: JsonObject | string | undefined): string | undefined {
  return typeof context === 'string' ? context : objectText('context', context);
}

function nameOf(value: JsonObject, type: CallType): string {
  const given = value[type === 'track' ? 'event' : 'name'];
  switch (type) {
    case 'track':
      return eventName('event', given);
    case 'page':
    case 'screen':
      return given === undefined || given === null || given === '' ? type : eventName('name', given);
    default:
      return type;
  }
}

/** @throws {InvalidCall} */
export function eventName(field: string, given: unknown): string {
  if (typeof given !== 'string') throw new InvalidCall(`${field} must be a string.`);
  const error = textError(given, EVENT_NAME_LENGTH_MAX);
  if (error !== undefined) throw new InvalidCall(`${field} ${error}.`);
  return given;
}

function propertiesText(value: JsonObject, type: CallType, previousId: string | undefined): string | undefined {
  const given = objectOf('properties', value['properties']);
  const added: Record<string, unknown> = {};
  if (type === 'page' || type === 'screen') {
    for (const name of ['name', 'category']) {
      const text = value[name];
      if (typeof text === 'string' && text !== '') added[name] = text;
    }
  }
  if (previousId !== undefined) added['previousId'] = previousId;
  if (Object.keys(added).length === 0) return objectText('properties', given);
  const members = membersOf(given);
  const isWhole = members !== undefined && Object.keys(added).every((name) => Object.hasOwn(members, name));
  return objectText('properties', isWhole ? members : { ...added, ...members });
}

/** The traits of `identify` may be in the context alone, as RudderStack's Python client sends them. */
function traitsOf(value: JsonObject, type: CallType, context: CallContext): JsonObject | ObjectText | undefined {
  const given = objectOf('traits', value['traits']);
  return given ?? (type === 'identify' ? objectOf('traits', context.get('traits')) : undefined);
}

function changesOf(
  type: CallType,
  { userId, groupId }: Subject,
  traits: JsonObject | ObjectText | undefined,
  propertiesMax: number,
): SubmittedProperty[] {
  const id = type === 'identify' ? userId : type === 'group' ? groupId : undefined;
  if (type === 'group' && groupId === undefined) throw new InvalidCall('groupId is needed in a group call.');
  if (id === undefined || traits === undefined) return [];
  const entries = Object.entries(membersOf(traits) ?? {});
  if (entries.length > propertiesMax) throw new InvalidCall(`traits ${tooManyProperties(propertiesMax)}.`);
  return entries.map(([name, trait]) => {
    const error = errorOfMember(name, trait);
    if (error !== undefined) throw new InvalidCall(`traits ${error}.`);
    return { name, json: trait === null ? undefined : encodeJson(trait) };
  });
}

/**
 * Returns the time of a call: its timestamp, else its originalTimestamp, else the time in its messageId; `undefined` when it
 * has none. The clock decides whether a time is accepted, never what it becomes: a repeat has the same time whenever it
 * arrives.
 *
 * @throws {InvalidCall}
 */
export function timeOf(
  value: JsonObject,
  messageId: string | undefined,
  uuid: string | undefined,
  now: number,
): number | undefined {
  const name = ['timestamp', 'originalTimestamp'].find((field) => (value[field] ?? '') !== '');
  if (name === undefined) {
    const written = NODE_MESSAGE_ID.exec(messageId ?? '')?.[1];
    const ms = written === undefined ? uuidV7TimeMs(uuid) : Number(written);
    if (ms === undefined || ms < TIMESTAMP_MS_MIN) return undefined;
    return notAhead(messageId === undefined ? 'the time in uuid' : 'the time in messageId', ms, now);
  }
  const text = value[name];
  const ms = typeof text === 'string' ? parseTimestamp(text)?.ms : undefined;
  if (ms === undefined) throw new InvalidCall(`${name} must be an ISO 8601 timestamp.`);
  if (ms < TIMESTAMP_MS_MIN) throw new InvalidCall(`${name} must not be before 2000-01-01.`);
  return notAhead(name, ms, now);
}

function notAhead(name: string, ms: number, now: number): number {
  if (ms <= now + TIMESTAMP_AHEAD_MS_MAX) return ms;
  throw new InvalidCall(`${name} must be at most one day from now.`);
}
