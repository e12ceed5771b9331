import { parseJson } from '@sluice/shared/json';
import { NAME_DOTS_MAX } from '../limits.ts';
import { PROPERTIES } from './property-parameter.ts';

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

interface Found {
  readonly types: Set<JsonType>;
  count: number;
  lastSeenMs: number;
  /** The event that was counted last. */
  event: number;
}

/**
 * Collects the names of properties. A name reaches into objects by dots; keys that have dots themselves have the same
 * name, as they have in a filter. Names with more dots than a filter may have are left out, and so are the items of
 * arrays.
 */
export class PropertyPaths {
  readonly #found = new Map<string, Found>();
  readonly #prefix: string;
  #events = 0;

  /** @param prefix what the paths begin with, with or without `properties.`; empty for all */
  constructor(prefix: string) {
    this.#prefix = prefix;
  }

  /** Adds the properties of one event, and returns how many paths there are. */
  add(json: string, timestampMs: number): number {
    this.#events += 1;
    const document = parseJson(json);
    if (typeOf(document) === 'object') this.#addObject(document as object, '', 0, timestampMs);
    return this.#found.size;
  }

  /** Returns the first paths: those that most events have, then by their bytes. */
  first(limit: number): readonly PropertyPath[] {
    return [...this.#found]
      .map(([name, { types, count, lastSeenMs }]) => ({
        path: `${PROPERTIES}${name}`,
        types: JSON_TYPES.filter((type) => types.has(type)),
        count,
        lastSeenMs,
      }))
      .sort((one, other) => other.count - one.count || Buffer.compare(Buffer.from(one.path), Buffer.from(other.path)))
      .slice(0, limit);
  }

  #addObject(object: object, parent: string, dots: number, timestampMs: number): void {
    for (const [key, value] of Object.entries(object)) {
      const dotsOfName = dots + key.split('.').length - 1;
      if (dotsOfName > NAME_DOTS_MAX) continue;
      const name = parent + key;
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
      found = { types: new Set(), count: 0, lastSeenMs: timestampMs, event: 0 };
      this.#found.set(name, found);
    }
    found.types.add(type);
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
