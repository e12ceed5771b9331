import type { Reservation } from '@sluice/shared/http/memory-budget';
import { parseExactJson } from '@sluice/shared/text/json';
import { reserve } from '../../http/request-memory.ts';
import { firstEntries, MENU_ENTRIES_MAX } from './menu-entries.ts';

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

  /** Adds the values of one event. @throws {Problem} `overloaded` */
  add(values: readonly unknown[]): void {
    for (const json of new Set(values.map((value) => JSON.stringify(value)))) {
      if (!textOfJson(json).startsWith(this.#prefix)) continue;
      const count = this.#counts.get(json) ?? 0;
      if (count === 0) reserve(this.#memory, VALUE_BYTES + MEMORY_PER_CHARACTER * json.length);
      this.#counts.set(json, count + 1);
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
