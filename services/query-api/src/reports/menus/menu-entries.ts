import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Reservation } from '@sluice/shared/http/memory-budget';
import { parseExactJson, parseJson } from '@sluice/shared/text/json';
import { NAME_DOTS_MAX, reserve } from '../../http/http.ts';
import { PROPERTIES } from '../group-key.ts';

/** How many entries a menu holds in memory: a sample ends with the event that reaches this number. */
export const MENU_ENTRIES_MAX = 100_000;

/** An entry of a menu, and in how many of the sampled events it is. */
export interface MenuEntry {
  readonly text: string;
  /** Tells entries of the same text apart. Default: no other one has it. */
  readonly json?: string;
  readonly count: number;
}

/** How many entries are ordered before other requests have their turn. */
const ENTRIES_PER_TURN = 4_096;

/**
 * Returns the first entries: those that most events have, then by the UTF-8 bytes of their text, then of their JSON. It
 * gives way to other requests, since a menu may have {@link MENU_ENTRIES_MAX} entries.
 */
export async function firstEntries<Entry extends MenuEntry>(
  entries: Iterable<Entry>,
  limit: number,
): Promise<readonly Entry[]> {
  let first: Ranked<Entry>[] = [];
  let added: Ranked<Entry>[] = [];
  const settle = () => {
    first = [...first, ...added].sort(compareRanked).slice(0, limit);
    added = [];
  };
  for (const entry of entries) {
    added.push({ entry, bytes: Buffer.from(entry.text) });
    if (added.length < ENTRIES_PER_TURN) continue;
    settle();
    await nextTurn();
  }
  settle();
  return first.map(({ entry }) => entry);
}

interface Ranked<Entry> {
  readonly entry: Entry;
  /** The bytes of its text. */
  readonly bytes: Buffer;
}

function compareRanked(one: Ranked<MenuEntry>, other: Ranked<MenuEntry>): number {
  return (
    other.entry.count - one.entry.count ||
    Buffer.compare(one.bytes, other.bytes) ||
    Buffer.compare(Buffer.from(one.entry.json ?? ''), Buffer.from(other.entry.json ?? ''))
  );
}

/** The types of JSON values. */
export const JSON_TYPES = ['array', 'boolean', 'null', 'number', 'object', 'string'] as const;

export type JsonType = (typeof JSON_TYPES)[number];

/** A property of sampled events, at any depth of their objects. */
export interface PropertyPath {
  /** As filters name it, `properties.address.city`. */
  readonly path: string;
  readonly types: readonly JsonType[];
  /** In how many of the events it is. */
  readonly count: number;
  readonly lastSeenMs: number;
}

/** How long a listed name is at most, in characters. A name inside objects repeats the names of all of them. */
export const NAME_CHARACTERS_MAX = 256;

/** How many characters the names of a menu may have together, each counted wherever an event has it. */
export const NAMES_CHARACTERS_MAX = 16 * 1_024 * 1_024;

/** What a name takes besides its characters, in bytes. */
const NAME_BYTES = 192;

interface Found {
  /** A bit for each of {@link JSON_TYPES}. */
  types: number;
  count: number;
  lastSeenMs: number;
  /** The event that was counted last. */
  event: number;
}

/**
 * Collects the names of properties. A name reaches into objects by dots; keys that have dots themselves have the same
 * name, as they have in a filter. Names with more dots than a filter may have are left out, those that are longer than
 * {@link NAME_CHARACTERS_MAX}, and the items of arrays.
 */
export class PropertyPaths {
  readonly #found = new Map<string, Found>();
  readonly #prefix: string;
  readonly #root: string;
  readonly #memory: Reservation | undefined;
  #events = 0;
  /** How many events the properties are of that are added now. */
  #count = 1;
  #characters = 0;

  /**
   * @param prefix what the paths begin with, with or without `root`; empty for all
   * @param root what a path has before the name, such as `properties.`
   */
  constructor(prefix: string, memory?: Reservation, root = PROPERTIES) {
    this.#prefix = prefix;
    this.#root = root;
    this.#memory = memory;
  }

  /** Whether these paths are as many, or as long, as a menu holds. */
  get isFull(): boolean {
    return this.#found.size >= MENU_ENTRIES_MAX || this.#characters >= NAMES_CHARACTERS_MAX;
  }

  /** Adds the properties of one event. @throws {Problem} `overloaded` */
  add(json: string, timestampMs: number): void {
    this.begin(1);
    this.addPart(json, timestampMs);
  }

  /** Begins with properties that some events have in common. */
  begin(count: number): void {
    this.#events += 1;
    this.#count = count;
  }

  /** Adds some of the properties that were begun with. @throws {Problem} `overloaded` */
  addPart(json: string, timestampMs: number): void {
    const document = parseJson(json);
    if (typeOf(document) === 'object') this.#addObject(document as object, '', 0, timestampMs);
  }

  /** Returns the first paths: those that most events have, then by their bytes. */
  async first(limit: number): Promise<readonly PropertyPath[]> {
    const entries = this.#found
      .entries()
      .map(([text, { count, types, lastSeenMs }]) => ({ text, count, types, lastSeenMs }));
    return (await firstEntries(entries, limit)).map(({ text, types, count, lastSeenMs }) => ({
      path: `${this.#root}${text}`,
      types: JSON_TYPES.filter((_, index) => types & (1 << index)),
      count,
      lastSeenMs,
    }));
  }

  #addObject(object: object, parent: string, dots: number, timestampMs: number): void {
    for (const [key, value] of Object.entries(object)) {
      const dotsOfName = dots + key.split('.').length - 1;
      // Before the name is put together: thousands of names may be inside an object whose own is very long.
      if (dotsOfName > NAME_DOTS_MAX || parent.length + key.length > NAME_CHARACTERS_MAX) continue;
      const name = parent + key;
      this.#characters += name.length;
      const type = typeOf(value);
      if (this.#isListed(name)) this.#addName(name, type, timestampMs);
      if (type === 'object') this.#addObject(value, `${name}.`, dotsOfName + 1, timestampMs);
    }
  }

  #isListed(name: string): boolean {
    return name.startsWith(this.#prefix) || `${this.#root}${name}`.startsWith(this.#prefix);
  }

  #addName(name: string, type: JsonType, timestampMs: number): void {
    let found = this.#found.get(name);
    if (!found) {
      reserve(this.#memory, NAME_BYTES + 2 * name.length);
      found = { types: 0, count: 0, lastSeenMs: timestampMs, event: 0 };
      this.#found.set(name, found);
    }
    found.types |= 1 << JSON_TYPES.indexOf(type);
    if (found.event === this.#events) return;
    found.event = this.#events;
    found.count += this.#count;
    found.lastSeenMs = Math.max(found.lastSeenMs, timestampMs);
  }
}

function typeOf(value: unknown): JsonType {
  if (value === null) return 'null';
  return Array.isArray(value) ? 'array' : (typeof value as JsonType);
}

/** A value, and in how many of the sampled events it is. */
export interface FoundValue {
  readonly json: string;
  readonly count: number;
}

/** What a value takes besides its JSON, in bytes. */
const VALUE_BYTES = 96;

/** The memory of a value as a multiple of its JSON: this, and its text while values are ordered. */
const MEMORY_PER_CHARACTER = 4;

/**
 * Counts values in events. An event counts once for each value that it has: several places may have the same one. Values
 * of different JSON types differ, and numbers keep all their digits.
 */
export class CountedValues {
  readonly #counts = new Map<string, number>();
  readonly #prefix: string;
  readonly #memory: Reservation | undefined;

  /** @param prefix what the values begin with as text: a string as it is, any other value as JSON; empty for all */
  constructor(prefix: string, memory?: Reservation) {
    this.#prefix = prefix;
    this.#memory = memory;
  }

  /** Whether these values are as many as a menu holds. */
  get isFull(): boolean {
    return this.#counts.size >= MENU_ENTRIES_MAX;
  }

  /** Adds the values of one event, or of some that have them in common. @throws {Problem} `overloaded` */
  add(values: readonly unknown[], events = 1): void {
    for (const json of new Set(values.map((value) => JSON.stringify(value)))) {
      if (!textOfJson(json).startsWith(this.#prefix)) continue;
      const count = this.#counts.get(json) ?? 0;
      if (count === 0) reserve(this.#memory, VALUE_BYTES + MEMORY_PER_CHARACTER * json.length);
      this.#counts.set(json, count + events);
    }
  }

  /** Returns the first values: those that most events have, then by the bytes of their text, then of their JSON. */
  async first(limit: number): Promise<readonly FoundValue[]> {
    const entries = this.#counts.entries().map(([json, count]) => ({ json, count, text: textOfJson(json) }));
    return await firstEntries(entries, limit);
  }
}

function textOfJson(json: string): string {
  return json.startsWith('"') ? (JSON.parse(json) as string).toWellFormed() : json;
}

/**
 * Returns what a filter on a property compares with: the values at all places that its name can mean, and the items of
 * those that are arrays. So the count of a value is the number of events that a filter by it finds.
 */
export function valuesOfProperty(json: string, name: string): readonly unknown[] {
  return valuesAt(parseExactJson(json), name).flatMap((value) => (Array.isArray(value) ? [value, ...value] : [value]));
}

function valuesAt(document: unknown, name: string): readonly unknown[] {
  if (typeof document !== 'object' || document === null || Array.isArray(document)) return [];
  // A long number is an object with one member.
  if (JSON.isRawJSON(document)) return [];
  const object = document as Readonly<Record<string, unknown>>;
  const values = Object.hasOwn(object, name) ? [object[name]] : [];
  for (let dot = name.indexOf('.'); dot >= 0; dot = name.indexOf('.', dot + 1)) {
    const key = name.slice(0, dot);
    if (Object.hasOwn(object, key)) values.push(...valuesAt(object[key], name.slice(dot + 1)));
  }
  return values;
}
