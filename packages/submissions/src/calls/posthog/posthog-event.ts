import { encodeJson, errorOfMember, isJsonObject, ObjectText } from '../../reading/json-object.ts';
import { type SubmittedProperty, tooManyProperties } from '../../reading/submission.ts';
import { IDENTIFIER_LENGTH_MAX } from '../../reading/submission-limits.ts';
import { type Link, linkOf } from '../../rows/link-row.ts';
import { type Call, type CallType, InvalidCall } from '../call.ts';
import {
  type CallParserOptions,
  clockOf,
  eventName,
  identifierOf,
  isEmptyArray,
  objectOf,
  objectText,
  UUID,
  userIdOf,
} from '../call-parser.ts';
import { timeOf } from '../call-time.ts';
import { PosthogProperties } from './posthog-properties.ts';

type JsonObject = Readonly<Record<string, unknown>>;

/** The events that say who somebody is, and what their rows are. All others are of type `track` and keep their names. */
const TYPES: Readonly<Record<string, CallType>> = {
  $identify: 'identify',
  $groupidentify: 'group',
  $create_alias: 'alias',
};

/** Separates the parts of the text that a uuid is made of. */
const SEPARATOR = '\0';

/**
 * Makes a call of an event as PostHog's clients send it. `null` counts as absent, and so does an empty identifier.
 *
 * @throws {InvalidCall}
 */
export function parsePosthogEvent(value: unknown, options: CallParserOptions): Call {
  if (!isJsonObject(value)) throw new InvalidCall('malformed', 'An event must be an object.');
  const name = eventName('event', value['event']);
  const type = Object.hasOwn(TYPES, name) ? (TYPES[name] as CallType) : 'track';
  const properties = new PosthogProperties(objectOf('properties', value['properties']));
  const distinctId = distinctIdOf(value['distinct_id'] ?? value['$distinct_id'] ?? properties.get('distinct_id'));
  const uuid = uuidOf(value);
  const time = timeOf(value, undefined, uuid, clockOf(value['sent_at'], options));
  const subject = subjectOf(type, distinctId, properties);
  const stored = storedProperties(type, distinctId, properties);
  const set = type === 'group' ? objectIn('$group_set', properties.get('$group_set')) : mergedSet(value, properties);
  return {
    type,
    event: type === 'track' ? name : type,
    messageId: uuid ?? givenUuid(value),
    uuid,
    content: contentOf(value, distinctId, name, stored),
    timestamp: time.ms,
    ...subject,
    properties: stored,
    context: objectText('context', time.sent === undefined ? undefined : { sentTimestamp: time.sent }),
    traits: type === 'track' || set === undefined ? undefined : objectText('$set', set),
    changed: type === 'group' ? 'organization' : 'user',
    changes: changesOf(type, subject, set, { value, properties, propertiesMax: options.propertiesMax }),
    links: linksOf(type, subject, distinctId, properties),
  };
}

type Subject = Readonly<Record<'userId' | 'anonymousId' | 'groupId', string | undefined>>;

const NOBODY: Subject = { userId: undefined, anonymousId: undefined, groupId: undefined };

/**
 * Returns whose an event is. The distinct_id of a person who is not identified is no user, and neither is that of
 * `$groupidentify`, which clients make up. That of an alias may be either of the two that belong together: posthog-node has
 * the user there, and posthog-python the other one.
 */
function subjectOf(type: CallType, distinctId: string | undefined, properties: PosthogProperties): Subject {
  if (type === 'alias') return { ...NOBODY, groupId: firstGroup(properties.get('$groups')) };
  if (type === 'group') {
    const groupId = groupOf(properties.get('$group_type'), properties.get('$group_key'));
    if (groupId === undefined)
      throw new InvalidCall('identifier', '$group_type and $group_key are needed in $groupidentify.');
    return { ...NOBODY, groupId };
  }
  if (distinctId === undefined) throw new InvalidCall('identifier', 'distinct_id is needed.');
  const groupId = firstGroup(properties.get('$groups'));
  if (type === 'identify') {
    const anonymousId = idOf('$anon_distinct_id', properties.get('$anon_distinct_id'));
    return { userId: distinctId, anonymousId, groupId };
  }
  return isAnonymous(distinctId, properties)
    ? { userId: undefined, anonymousId: distinctId, groupId }
    : { userId: distinctId, anonymousId: undefined, groupId };
}

/**
 * Either identifier of an alias may be the user's, so each is linked as a visitor to the other. A link concerns events without a
 * user alone, and of the user's own identifier there are none.
 */
function linksOf(
  type: CallType,
  { userId, anonymousId }: Subject,
  distinctId: string | undefined,
  properties: PosthogProperties,
): Link[] {
  const alias = type === 'alias' ? userIdOf(properties.get('alias')) : undefined;
  const links =
    alias === undefined ? [linkOf(anonymousId, userId)] : [linkOf(alias, distinctId), linkOf(distinctId, alias)];
  return links.filter((link) => link !== undefined);
}

function isAnonymous(distinctId: string, properties: PosthogProperties): boolean {
  return (
    properties.get('$process_person_profile') === false ||
    properties.get('$is_identified') === false ||
    properties.get('$device_id') === distinctId
  );
}

function firstGroup(groups: unknown): string | undefined {
  for (const [type, key] of Object.entries(objectIn('$groups', groups) ?? {})) {
    const groupId = groupOf(type, key);
    if (groupId !== undefined) return groupId;
  }
  return undefined;
}

/** Returns the identifier of an organization: `company:acme`. Two groups of different types may have the same key. */
function groupOf(type: unknown, key: unknown): string | undefined {
  const [typeText, keyText] = [idOf('The type of a group', type), idOf('The key of a group', key)];
  return typeText === undefined || keyText === undefined ? undefined : idOf('A group', `${typeText}:${keyText}`);
}

/** posthog-js takes any value for a distinct_id, and PostHog the JSON text of what is no string. */
function distinctIdOf(given: unknown): string | undefined {
  const isText = typeof given !== 'object' || given === null || JSON.isRawJSON(given);
  return idOf('distinct_id', isText ? given : encodeJson(given instanceof ObjectText ? given.parse() : given));
}

function idOf(name: string, given: unknown): string | undefined {
  return identifierOf(name, given, IDENTIFIER_LENGTH_MAX);
}

/** The properties of an alias have both of its identifiers, wherever the client put them. */
function storedProperties(
  type: CallType,
  distinctId: string | undefined,
  properties: PosthogProperties,
): string | undefined {
  const { stored } = properties;
  const isMissing = type === 'alias' && distinctId !== undefined && properties.get('distinct_id') === undefined;
  if (isMissing) {
    const members = typeof stored === 'string' ? (JSON.parse(stored) as JsonObject) : stored;
    return objectText('properties', { ...members, distinct_id: distinctId });
  }
  return typeof stored === 'string' ? stored : objectText('properties', stored);
}

function uuidOf({ uuid }: JsonObject): string | undefined {
  return typeof uuid === 'string' && UUID.test(uuid) ? uuid.toLowerCase() : undefined;
}

/** A uuid that is none in form still tells a repeat from a new event. */
function givenUuid({ uuid }: JsonObject): string | undefined {
  return typeof uuid === 'string' && uuid !== '' ? `posthog${SEPARATOR}uuid${SEPARATOR}${uuid}` : undefined;
}

/** What an event changes beside its properties. */
const CHANGES = ['$set', '$set_once', '$unset'] as const;

/**
 * Returns the text of which the uuid of an event without one is made: the same in each retry. Without a timestamp nothing
 * tells a retry from a new event that is equal. Clients that send again what may have been lost send one of the two.
 */
function contentOf(
  value: JsonObject,
  distinctId: string | undefined,
  name: string,
  properties: string | undefined,
): string | undefined {
  const timestamp = value['timestamp'] ?? '';
  if (timestamp === '') return undefined;
  const time = typeof timestamp === 'string' ? timestamp : jsonOf(timestamp);
  const parts = ['posthog', distinctId ?? '', name, time, properties ?? ''];
  const changes = CHANGES.map((field) => jsonOf(value[field] ?? undefined));
  // Most events have none: their uuids stay as they were before this counted.
  if (changes.some((json) => json !== '')) parts.push(...changes);
  return parts.join(SEPARATOR);
}

function jsonOf(given: unknown): string {
  if (given === undefined) return '';
  return given instanceof ObjectText ? given.json : encodeJson(given);
}

/** What is set at the top of an event counts before what is set in its properties. */
function mergedSet(value: JsonObject, properties: PosthogProperties): JsonObject | undefined {
  return merged(objectIn('$set', properties.get('$set')), objectIn('$set', value['$set']));
}

function merged(under: JsonObject | undefined, over: JsonObject | undefined): JsonObject | undefined {
  return under && over ? { ...under, ...over } : (over ?? under);
}

interface ChangesOptions {
  readonly value: JsonObject;
  readonly properties: PosthogProperties;
  readonly propertiesMax: number;
}

function changesOf(
  type: CallType,
  { userId, groupId }: Subject,
  set: JsonObject | undefined,
  { value, properties, propertiesMax }: ChangesOptions,
): SubmittedProperty[] {
  if ((type === 'group' ? groupId : userId) === undefined) return [];
  const changes = Object.entries(set ?? {}).map(([name, given]) => changeOf('$set', name, given));
  if (type !== 'group') {
    const once = merged(objectIn('$set_once', properties.get('$set_once')), objectIn('$set_once', value['$set_once']));
    for (const [name, given] of Object.entries(once ?? {})) {
      // posthog-js sends dozens of them with each event.
      if (given !== null) changes.push({ ...changeOf('$set_once', name, given), once: true });
    }
    const unset = [...namesIn(properties.get('$unset')), ...namesIn(value['$unset'] ?? undefined)];
    for (const name of unset) changes.push({ name, json: undefined });
  }
  if (changes.length > propertiesMax) throw new InvalidCall('properties', `$set ${tooManyProperties(propertiesMax)}.`);
  return changes;
}

function changeOf(field: string, name: string, given: unknown): SubmittedProperty {
  const error = errorOfMember(name, given);
  if (error !== undefined) throw new InvalidCall('properties', `${field} ${error}.`);
  return { name, json: given === null ? undefined : encodeJson(given) };
}

/** `$unset` is a list of names; some clients send an object with them. */
function namesIn(unset: unknown): readonly string[] {
  if (unset === undefined) return [];
  const names = Array.isArray(unset) ? unset : Object.keys(objectIn('$unset', unset) ?? {});
  if (names.every((name): name is string => typeof name === 'string' && name.isWellFormed())) return names;
  throw new InvalidCall('properties', '$unset must be an array of names.');
}

function objectIn(name: string, given: unknown): JsonObject | undefined {
  if (given === undefined || given === null || isEmptyArray(given)) return undefined;
  if (!isJsonObject(given)) throw new InvalidCall('properties', `${name} must be an object.`);
  return given instanceof ObjectText ? given.parse() : given;
}
