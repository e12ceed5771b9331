import { parseJson } from '@sluice/shared/json';
import type { Sql } from './sql.ts';

/** Equality with a property: `properties.<name>=<value>`. */
export interface PropertyFilter {
  readonly name: string;
  readonly value: string;
}

/** How many dots a name may have: each doubles the number of places where the property can be. */
export const NAME_DOTS_MAX = 6;

/** How many such filters one request may have. */
export const PROPERTY_FILTERS_MAX = 20;

/**
 * The places that a name can mean: a dot reaches into an object, or is part of a key. `a.b` gives `a.b` as one key, and
 * `a` then `b`. Each place is a list of ranges `[from, to)` over the name's parts between the dots.
 */
export function placesOf(name: string): readonly (readonly PartRange[])[] {
  return placesFrom(0, name.split('.').length);
}

export interface PartRange {
  readonly from: number;
  readonly to: number;
}

function placesFrom(from: number, end: number): PartRange[][] {
  if (from === end) return [[]];
  const places: PartRange[][] = [];
  for (let to = end; to > from; to -= 1) {
    for (const rest of placesFrom(to, end)) places.push([{ from, to }, ...rest]);
  }
  return places;
}

/**
 * The JSON texts that a property equal to `value` can have: a string's, and that of the number, boolean, null, array or
 * object whose JSON the value is. `JSON.stringify(v) === value` holds for such a `v` only when the value is written as
 * JSON.stringify writes it.
 */
export function readingsOf(value: string): readonly string[] {
  const asString = JSON.stringify(value);
  try {
    const parsed = parseJson(value);
    if (typeof parsed !== 'string' && JSON.stringify(parsed) === value) return [asString, value];
  } catch {
    // Not JSON, or nested too deeply for anything that was accepted: a string then.
  }
  return [asString];
}

/**
 * Text that every document with a property equal to `value` contains, since documents are written by JSON.stringify;
 * `undefined` when there is none. A substring search is many times cheaper than reading JSON.
 */
export function needleOf(value: string): string | undefined {
  const [asString, asOther] = readingsOf(value);
  if (asOther === undefined) return asString;
  // Inside arrays and objects a negative zero is written as -0, but compares as 0.
  return asOther.startsWith('{') || asOther.startsWith('[') ? undefined : asOther;
}

/** Names the parameters of one filter apart from those of the others. */
export class FilterParameters {
  readonly params: Record<string, string> = {};
  readonly #prefix: string;
  readonly #parts: readonly string[];

  constructor(index: number, { name }: PropertyFilter) {
    this.#prefix = `property${index}`;
    this.#parts = name.split('.');
  }

  /** The placeholder of a key: the name's parts of that range, joined again, as a document or a repaired one has it. */
  key({ from, to }: PartRange, inRepaired: boolean): string {
    const key = this.#parts.slice(from, to).join('.');
    return inRepaired
      ? this.#bind(`_repaired_key_${from}_${to}`, repairedKey(key))
      : this.#bind(`_key_${from}_${to}`, key);
  }

  reading(index: number, json: string): string {
    return this.#bind(`_value_${index}`, json);
  }

  needle(text: string): string {
    return this.#bind('_needle', text);
  }

  #bind(suffix: string, value: string): string {
    const name = this.#prefix + suffix;
    this.params[name] = value;
    return `{${name}:String}`;
  }
}

/**
 * The condition that one of `places` inside the JSON text in `column` equals the filter's value. A place without ranges
 * is the whole text.
 *
 * Both sides are compared as ClickHouse writes them out again (JSONExtractRaw), which is the same for the same value:
 * `1e+21` and `-0` become `1e21` and `0` on both. A text that ClickHouse's parser refuses is {@link repaired} first.
 */
export function propertyEquals(
  column: string,
  places: readonly (readonly PartRange[])[],
  { name, value }: PropertyFilter,
  parameters: FilterParameters,
): string {
  const readings = readingsOf(value).map((json, index) => parameters.reading(index, json));
  const needle = needleOf(value);
  // Repairing alters neither this name nor this value, so it makes no difference whether it was needed.
  const exact = [name, ...readingsOf(value)].every((text) => !REPAIRED.test(text))
    ? foundIn(`if(isValidJSON(${column}), ${column}, ${repaired(column)})`, readings)
    : `if(isValidJSON(${column}), ${foundIn(column, readings)}, ${foundIn(repaired(column), readings.map(repaired), true)})`;
  return needle === undefined ? exact : `position(${column}, ${parameters.needle(needle)}) > 0 AND ${exact}`;

  function foundIn(json: string, wanted: readonly string[], inRepaired = false): string {
    const keys = places.map((place) => place.map((range) => parameters.key(range, inRepaired)));
    const found = keys.map((path) => extract('document', path)).join(', ');
    // What is not there, or not to be parsed, is the empty string, which equals nothing.
    const values = `arrayFilter(raw -> raw != '', [${wanted.map((text) => extract(text, [])).join(', ')}])`;
    // The lambda makes the document once for all places; written out, each place would hold a copy of it in memory.
    return `arrayExists(document -> hasAny([${found}], ${values}), [${json}])`;
  }
}

/** The condition that the properties of an event match a filter. `index` tells the filters of a query apart. */
export function eventPropertyCondition(filter: PropertyFilter, index: number): Sql {
  const parameters = new FilterParameters(index, filter);
  const sql = propertyEquals('properties', placesOf(filter.name), filter, parameters);
  return { sql, params: parameters.params };
}

function extract(json: string, keys: readonly string[]): string {
  return `JSONExtractRaw(${[json, ...keys].join(', ')})`;
}

/** What {@link repaired} alters other than in its spelling, in a name and in JSON text. */
const REPAIRED = /\0|\\u(?:0000|d[89a-f])|[0-9]{19}/;

/** A key as it is in a document that was {@link repaired}. */
function repairedKey(key: string): string {
  return key.replaceAll('\0', '\0' + '0000').replaceAll(/([:,[]-?[0-9]{19,21})/g, '$1.0');
}

/**
 * JSON text that ClickHouse's parser takes, for one that it refuses: it knows neither lone surrogates nor integers
 * beyond 64 bits. Different texts stay different:
 * - an escaped backslash is written `\u005c`, so that every backslash left begins an escape;
 * - a lone surrogate `\ud800` becomes the character NUL and its four digits, and NUL itself becomes NUL and `0000`;
 * - an integer of 19 to 21 digits gets `.0`, which makes it the double that it is. So do such digits after a comma,
 *   colon or bracket inside a string: always, and so without harm.
 */
function repaired(json: string): string {
  const plainBackslashes = String.raw`replaceAll(${json}, '\\\\', '\\u005c')`;
  const escapedSurrogates = String.raw`replaceRegexpAll(${plainBackslashes}, '\\\\u(0000|d[89a-f][0-9a-f]{2})', '\\\\u0000\\1')`;
  return String.raw`replaceRegexpAll(${escapedSurrogates}, '((?:^|[:,\\[])-?[0-9]{19,21})', '\\1.0')`;
}
