import { EVENT_IDENTIFIERS, type EventIdentifier } from '@sluice/shared/rows/event-identifiers';
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
import { EVENT_NAME_LENGTH_MAX, IDENTIFIER_LENGTH_MAX } from '../reading/submission-limits.ts';
import { type Link, linkOf } from '../rows/link-row.ts';
import { CALL_TYPES, type Call, type CallType, InvalidCall, MESSAGE_ID_LENGTH_MAX } from './call.ts';
import { type CallClock, timeOf } from './call-time.ts';

type JsonObject = Readonly<Record<string, unknown>>;

export const UUID = z.regexes.uuid();

export interface CallParserOptions {
  readonly propertiesMax: number;
  /** The server's clock, in milliseconds since 1970. */
  readonly now: () => number;
  /** When the request was received, in milliseconds since 1970. Default: now. */
  readonly receivedMs?: number | undefined;
  /** When the client sent the request by its own clock, as it says it. A call may say it itself. */
  readonly sentAt?: unknown;
}

/**
 * Makes a call of its JSON value: its event with everything that is stored, and the properties that it sets. `null` counts
 * as absent, so does an empty identifier, and an empty array as an object is one: PHP writes an empty map so. A number or a
 * boolean as an identifier or name is written as JSON.stringify writes it.
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
  if (!isJsonObject(value)) throw new InvalidCall('malformed', 'A call must be an object.');
  const callType = type ?? typeOf(value);
  const context = new CallContext(objectOf('context', value['context']), batchContext);
  const messageId = identifierOf('messageId', value['messageId'], MESSAGE_ID_LENGTH_MAX);
  const uuid = messageId !== undefined && UUID.test(messageId) ? messageId.toLowerCase() : undefined;
  const time = timeOf(value, messageId, uuid, clockOf(value['sentAt'], options));
  const subject = subjectOf(value, context);
  const traits = traitsOf(value, callType, context);
  return {
    type: callType,
    event: nameOf(value, callType),
    messageId,
    uuid,
    timestamp: time.ms,
    ...subject,
    properties: propertiesText(value, callType, subject.previousId),
    context: contextText(
      context.with({ messageId: uuid === undefined ? messageId : undefined, sentTimestamp: time.sent }),
    ),
    traits: objectText('traits', traits),
    changed: callType === 'group' ? 'organization' : 'user',
    changes: changesOf(callType, subject, traits, options.propertiesMax),
    links: linksOf(callType, subject),
  };
}

/**
 * The previousId of an alias may be that of a user. As that of a visitor it then has no events, so that no two users become one.
 */
function linksOf(type: CallType, { userId, anonymousId, previousId }: Subject): Link[] {
  const ids = type === 'alias' && previousId !== anonymousId ? [anonymousId, previousId] : [anonymousId];
  return ids.map((id) => linkOf(id, userId)).filter((link) => link !== undefined);
}

/** @param sentAt when the call was sent, as it says it itself */
export function clockOf(sentAt: unknown, { now, receivedMs, sentAt: ofRequest }: CallParserOptions): CallClock {
  const nowMs = now();
  return { nowMs, receivedMs: receivedMs ?? nowMs, sentAt: sentAt ?? ofRequest };
}

function typeOf({ type }: JsonObject): CallType {
  const known = CALL_TYPES.find((name) => name === type);
  if (!known) throw new InvalidCall('type', `type must be one of: ${CALL_TYPES.join(', ')}.`);
  return known;
}

/** Returns whom a `userId` or an `anonymousId` names; `undefined` when it is no identifier. */
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
    throw new InvalidCall('identifier', 'One of userId, anonymousId, groupId and previousId is needed.');
  }
  return subject as unknown as Subject;
}

/** Returns what is given as an identifier: a text, or another scalar as JSON.stringify writes it. @throws {InvalidCall} */
export function identifierOf(name: string, given: unknown, lengthMax: number): string | undefined {
  if (given === undefined || given === null || given === '') return undefined;
  // JSON.stringify writes an infinite number as null: all of them would be one user, or repeats of one event.
  if (typeof given === 'number' && !Number.isFinite(given))
    throw new InvalidCall('identifier', `${name} is ${NUMBER_TOO_LARGE}.`);
  const text = scalarText(given);
  if (text === undefined) throw new InvalidCall('identifier', `${name} must be a string.`);
  const error = textError(text, lengthMax);
  if (error !== undefined) throw new InvalidCall('identifier', `${name} ${error}.`);
  return text;
}

/** Returns a text as it is, and a number or a boolean as JSON.stringify writes it; `undefined` for anything else. */
function scalarText(given: unknown): string | undefined {
  if (typeof given === 'string') return given;
  const isScalar = typeof given === 'number' || typeof given === 'boolean' || JSON.isRawJSON(given);
  return isScalar ? JSON.stringify(given) : undefined;
}

/** PHP writes an empty map as an empty array. */
export function isEmptyArray(given: unknown): boolean {
  return Array.isArray(given) && given.length === 0;
}

/** Returns what is given as an object, parsed or not. @throws {InvalidCall} */
export function objectOf(name: string, given: unknown): JsonObject | ObjectText | undefined {
  if (given === undefined || given === null) return undefined;
  if (isEmptyArray(given)) return {};
  if (!isJsonObject(given)) throw new InvalidCall('properties', `${name} must be an object.`);
  return given;
}

function membersOf(object: JsonObject | ObjectText | undefined): JsonObject | undefined {
  return object instanceof ObjectText ? object.parse() : object;
}

/** Returns the JSON text of an object. @throws {InvalidCall} */
export function objectText(name: string, object: JsonObject | ObjectText | undefined): string | undefined {
  if (object === undefined) return undefined;
  const text = jsonObjectText(object);
  if (text === undefined) throw new InvalidCall('properties', `${name} ${errorOfObject(object as JsonObject)}.`);
  return text;
}

function contextText(context: JsonObject | string | undefined): string | undefined {
  return typeof context === 'string' ? context : objectText('context', context);
}

function nameOf(value: JsonObject, type: CallType): string {
  switch (type) {
    case 'track':
      return eventName('event', value['event']);
    case 'page':
    case 'screen': {
      // RudderStack's clients for Android and iOS have the name of a screen in `event`.
      const field = ['name', 'event'].find((name) => (value[name] ?? '') !== '');
      return field === undefined ? type : eventName(field, value[field]);
    }
    default:
      return type;
  }
}

/** @throws {InvalidCall} */
export function eventName(field: string, given: unknown): string {
  const text = scalarText(given);
  if (text === undefined) throw new InvalidCall('name', `${field} must be a string.`);
  const error = textError(text, EVENT_NAME_LENGTH_MAX);
  if (error !== undefined) throw new InvalidCall('name', `${field} ${error}.`);
  return text;
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

/**
 * The traits of `identify` may be in the context alone, as RudderStack's clients for Python and Ruby send them. That for PHP
 * adds empty ones beside it.
 */
function traitsOf(value: JsonObject, type: CallType, context: CallContext): JsonObject | ObjectText | undefined {
  const given = objectOf('traits', value['traits']);
  const ofContext = type === 'identify' ? (context.get('traits') ?? undefined) : undefined;
  if (ofContext === undefined || Object.keys(membersOf(given) ?? {}).length > 0) return given;
  return objectOf('traits', ofContext);
}

function changesOf(
  type: CallType,
  { userId, groupId }: Subject,
  traits: JsonObject | ObjectText | undefined,
  propertiesMax: number,
): SubmittedProperty[] {
  const id = type === 'identify' ? userId : type === 'group' ? groupId : undefined;
  if (type === 'group' && groupId === undefined)
    throw new InvalidCall('identifier', 'groupId is needed in a group call.');
  if (id === undefined || traits === undefined) return [];
  const entries = Object.entries(membersOf(traits) ?? {});
  if (entries.length > propertiesMax)
    throw new InvalidCall('properties', `traits ${tooManyProperties(propertiesMax)}.`);
  return entries.map(([name, trait]) => {
    const error = errorOfMember(name, trait);
    if (error !== undefined) throw new InvalidCall('properties', `traits ${error}.`);
    return { name, json: trait === null ? undefined : encodeJson(trait) };
  });
}

/**
 * The context of a call: its own one, and under it that of its batch, name by name. A context that is text stays text as
 * long as nobody needs its members.
 */
class CallContext {
  readonly #text: string | undefined;
  #members: Record<string, unknown> | undefined;

  constructor(own: JsonObject | ObjectText | undefined, batch: JsonObject) {
    if (own instanceof ObjectText && Object.keys(batch).length === 0) this.#text = own.json;
    // A copy. As a spread, it has `__proto__` as a name like any other.
    else this.#members = { ...batch, ...(own instanceof ObjectText ? own.parse() : own) };
  }

  /** Returns a member; `undefined` when there is none. */
  get(name: string): unknown {
    return this.#members === undefined && !this.#text?.includes(`"${name}"`) ? undefined : this.#parsed()[name];
  }

  /** Returns the context with more members, unless it has them: an object, or its text; `undefined` when it is empty. */
  with(added: Readonly<Record<string, string | undefined>>): JsonObject | string | undefined {
    const text = this.#text;
    const more = Object.entries(added).filter(([, value]) => value !== undefined);
    if (this.#members === undefined && text !== undefined && !more.some(([name]) => text.includes(`"${name}"`))) {
      const members = [text.slice(1, -1), ...more.map(([name, value]) => `"${name}":${JSON.stringify(value)}`)];
      const all = members.filter((member) => member !== '').join();
      return all === '' ? undefined : `{${all}}`;
    }
    const members = this.#parsed();
    for (const [name, value] of more) members[name] ??= value;
    return Object.keys(members).length === 0 ? undefined : members;
  }

  #parsed(): Record<string, unknown> {
    this.#members ??= JSON.parse(this.#text ?? '{}') as Record<string, unknown>;
    return this.#members;
  }
}
