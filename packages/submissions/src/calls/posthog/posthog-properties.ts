import { isJsonObject, ObjectText } from '../../reading/json-object.ts';
import { type FoundMember, MemberFinder, withoutMember } from '../../reading/member-finder.ts';

type JsonObject = Readonly<Record<string, unknown>>;

/** The properties that say whose an event is and what it changes. All others are data. */
const READ_PROPERTIES = [
  'distinct_id',
  'alias',
  '$anon_distinct_id',
  '$device_id',
  '$process_person_profile',
  '$is_identified',
  '$groups',
  '$group_type',
  '$group_key',
  '$group_set',
  '$set',
  '$set_once',
  '$unset',
] as const;

export type ReadProperty = (typeof READ_PROPERTIES)[number];

/** Where posthog-js has the API key. It is never stored. */
export const KEY_PROPERTIES: readonly string[] = ['token', 'api_key', '$token'];

const FINDER = new MemberFinder([...READ_PROPERTIES, ...KEY_PROPERTIES]);

/** The properties of a PostHog event. They stay text where they came as one: most of them are only stored. */
export class PosthogProperties {
  readonly #parsed: JsonObject | undefined;
  readonly #text: string | undefined;
  readonly #found: readonly FoundMember[];

  constructor(given: JsonObject | ObjectText | undefined) {
    this.#parsed = given instanceof ObjectText ? undefined : given;
    this.#text = given instanceof ObjectText ? given.json : undefined;
    this.#found = this.#text === undefined ? [] : FINDER.find(this.#text);
  }

  /** Returns a property; `undefined` when there is none, also where it is `null`. */
  get(name: ReadProperty): unknown {
    if (this.#text === undefined) return this.#parsed?.[name] ?? undefined;
    for (const { name: found, valueStart, end } of this.#found) {
      if (found === name) return JSON.parse(this.#text.slice(valueStart, end)) ?? undefined;
    }
    return undefined;
  }

  /** Returns what is stored, without the API key: JSON text or an object; `undefined` when there is nothing. */
  get stored(): string | JsonObject | undefined {
    if (this.#text === undefined) return withoutKeys(this.#parsed);
    let text = this.#text;
    // From the end, so that the offsets of the others stay right.
    for (const member of this.#found.toReversed()) {
      if (KEY_PROPERTIES.includes(member.name)) text = withoutMember(text, member);
    }
    return text;
  }
}

function withoutKeys(object: JsonObject | undefined): JsonObject | undefined {
  if (!isJsonObject(object) || !KEY_PROPERTIES.some((name) => Object.hasOwn(object, name))) return object;
  // A spread keeps a member that is named __proto__.
  const copy: Record<string, unknown> = { ...object };
  for (const name of KEY_PROPERTIES) delete copy[name];
  return copy;
}
