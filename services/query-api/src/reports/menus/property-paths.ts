import type { Reservation } from '@sluice/shared/http/memory-budget';
import { parseJson } from '@sluice/shared/text/json';
import { NAME_DOTS_MAX } from '../../http/limits.ts';
import { reserve } from '../../http/request-memory.ts';
import { PROPERTIES } from '../property-parameter.ts';
import { firstEntries, MENU_ENTRIES_MAX } from './menu-entries.ts';

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
  readonly #memory: Reservation | undefined;
  #events = 0;
  #characters = 0;

  /** @param prefix what the paths begin with, with or without `properties.`; empty for all */
  constructor(prefix: string, memory?: Reservation) {
    this.#prefix = prefix;
    this.#memory = memory;
  }

  /** Whether these paths are as many, or as long, as a menu holds. */
  get isFull(): boolean {
    return this.#found.size >= MENU_ENTRIES_MAX || this.#characters >= NAMES_CHARACTERS_MAX;
  }

  /** Adds the properties of one event. @throws {Problem} `overloaded` */
  add(json: string, timestampMs: number): void {
    this.#events += 1;
    const document = parseJson(json);
    if (typeOf(document) === 'object') this.#addObject(document as object, '', 0, timestampMs);
  }

  /** Returns the first paths: those that most events have, then by their bytes. */
  async first(limit: number): Promise<readonly PropertyPath[]> {
    const entries = this.#found
      .entries()
      .map(([text, { count, types, lastSeenMs }]) => ({ text, count, types, lastSeenMs }));
    return (await firstEntries(entries, limit)).map(({ text, types, count, lastSeenMs }) => ({
      path: `${PROPERTIES}${text}`,
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
    return name.startsWith(this.#prefix) || `${PROPERTIES}${name}`.startsWith(this.#prefix);
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
    found.count += 1;
    found.lastSeenMs = Math.max(found.lastSeenMs, timestampMs);
  }
}

function typeOf(value: unknown): JsonType {
  if (value === null) return 'null';
  return Array.isArray(value) ? 'array' : (typeof value as JsonType);
}
