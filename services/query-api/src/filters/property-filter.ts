import { parseJson } from '@sluice/shared/json';
import type { Sql } from '../clickhouse/sql.ts';
import { COMPARISONS, type Condition } from './operators.ts';

/** The JSON objects of an event that can be asked about. Users and organizations have `properties` alone. */
export const DOCUMENTS = ['properties', 'context', 'traits'] as const;

export type DocumentName = (typeof DOCUMENTS)[number];

/** A condition on a property: `properties.<name>[<operator>]=<value>`. */
export interface PropertyFilter {
  readonly document: DocumentName;
  readonly name: string;
  readonly condition: Condition;
}

/** How many dots a name may have: each doubles the number of places where the property can be. */
export const NAME_DOTS_MAX = 6;

/** How many such filters one request may have. */
export const PROPERTY_FILTERS_MAX = 20;

/** How deep documents are at most; ClickHouse's parser would refuse what is much deeper. */
const DEPTH_MAX = 32;

/** How many texts ClickHouse can search for at once, and how long a list of them may be: a parameter has 128 KiB. */
const TEXTS_MAX = 255;
const TEXT_CHARACTERS_MAX = 32 * 1_024;

/** One of the places that a name can mean: a list of ranges over the name's parts between the dots, each a key. */
export type Place = readonly PartRange[];

/** The parts `[from, to)` of a name. */
export interface PartRange {
  readonly from: number;
  readonly to: number;
}

/**
 * The places that a name can mean: a dot reaches into an object, or is part of a key. `a.b` gives `a.b` as one key, and
 * `a` then `b`.
 */
export function placesOf(name: string): readonly Place[] {
  return placesFrom(0, name.split('.').length);
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
function readingsOf(value: string): readonly string[] {
  const asString = JSON.stringify(value);
  try {
    const parsed = parseJson(value);
    if (typeof parsed === 'string' || isDeeper(parsed, DEPTH_MAX)) return [asString];
    if (JSON.stringify(parsed) === value || INTEGER_OF_64_BITS.test(value)) return [asString, value];
  } catch {
    // Not JSON, or nested too deeply for the parser: a string then.
  }
  return [asString];
}

/** An integer with more digits than a double is sure to hold, which ClickHouse compares digit by digit all the same. */
const INTEGER_OF_64_BITS = /^(?:[1-9]\d{15,18}|-[1-9]\d{15,17})$/;

function isDeeper(value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return false;
  return levels === 0 || Object.values(value).some((member) => isDeeper(member, levels - 1));
}

/** The readings of all values that an equality or a list is about. */
function readingsIn({ operator, value }: Condition): readonly string[] {
  if (operator !== 'eq' && operator !== 'ne' && operator !== 'in') return [];
  return [value].flat().flatMap((item) => readingsOf(item));
}

/**
 * The texts `"<key>":<json>` of which every document contains one that matches an `eq` or an `in`, since documents are
 * written by JSON.stringify (but for `-0`, which keeps its sign). A document that contains one need not match.
 * `undefined` when there is no such list: for other operators, and where a value can be an array or an object.
 */
export function pairsOf({ name, condition }: PropertyFilter): readonly string[] | undefined {
  const texts = equalTextsOf(condition);
  const parts = name.split('.');
  const keys = parts.map((_, from) => JSON.stringify(parts.slice(from).join('.')));
  return texts && keys.flatMap((key) => texts.map((text) => `${key}:${text}`));
}

/** The JSON that a document can hold for a value that an `eq` or an `in` finds. */
function equalTextsOf(condition: Condition): readonly string[] | undefined {
  if (condition.operator !== 'eq' && condition.operator !== 'in') return undefined;
  const readings = readingsIn(condition);
  // Inside arrays and objects a negative zero is written as -0, but compares as 0.
  if (readings.some((json) => json.startsWith('{') || json.startsWith('['))) return undefined;
  return [...new Set(readings.includes('0') ? [...readings, '-0'] : readings)];
}

/**
 * Texts of which a document contains one when the condition holds at one of `places`; `undefined` when there are none.
 * A substring search is many times cheaper than reading JSON.
 */
function needlesOf({ name, condition }: PropertyFilter, places: readonly Place[]): readonly string[] | undefined {
  // All keys that a value can have end alike. A value that is the whole text has no key.
  const isWhole = places.some((place) => place.length === 0);
  const keyEnd = isWhole ? '' : `${escaped(name.split('.').at(-1) ?? '')}":`;
  const all = valueNeedlesOf(condition, keyEnd);
  const needles = areTooMany(all) ? [keyEnd] : all;
  return needles.includes('') ? undefined : needles;
}

function areTooMany(texts: readonly string[]): boolean {
  return texts.length > TEXTS_MAX || texts.reduce((sum, { length }) => sum + length, 0) > TEXT_CHARACTERS_MAX;
}

function valueNeedlesOf(condition: Condition, keyEnd: string): readonly string[] {
  switch (condition.operator) {
    case 'prefix':
      return [`${keyEnd}"${escapedStart(condition.value)}`];
    case 'contains':
      return [escapedStart(condition.value) || `${keyEnd}"`];
    default:
      return (equalTextsOf(condition) ?? ['']).map((text) => `${keyEnd}${text}`);
  }
}

/** Text as it is inside a JSON string. */
function escaped(text: string): string {
  return JSON.stringify(text).slice(1, -1);
}

/** As much of it as documents are sure to have so: U+FFFD also stands for the lone surrogates in them. */
function escapedStart(text: string): string {
  return escaped(text.split('\ufffd')[0] ?? '');
}

/** Binds the values of one filter, each once. `index` tells the filters of a query apart. */
export class FilterParameters {
  readonly params: Record<string, string | readonly string[]> = {};
  readonly #index: number;
  readonly #names = new Map<string, string>();

  constructor(index: number) {
    this.#index = index;
  }

  /** The placeholder of a text. */
  text(value: string): string {
    return `{${this.#nameOf(value)}:String}`;
  }

  /** The placeholder of a list of texts. */
  texts(values: readonly string[]): string {
    return `{${this.#nameOf(values)}:Array(String)}`;
  }

  /** Short, since a query can have hundreds. */
  #nameOf(value: string | readonly string[]): string {
    const key = JSON.stringify(value);
    const name = this.#names.get(key) ?? `p${this.#index}_${this.#names.size}`;
    this.#names.set(key, name);
    this.params[name] = value;
    return name;
  }
}

/** A filter that holds at any of its places, and whether what was asked for is its opposite. */
export interface PositiveFilter {
  readonly filter: PropertyFilter;
  readonly negated: boolean;
}

/** `ne` and `exists=false` hold where `eq` and `exists=true` hold at no place. */
export function positive(filter: PropertyFilter): PositiveFilter {
  const { condition } = filter;
  if (condition.operator === 'ne') {
    return { filter: { ...filter, condition: { operator: 'eq', value: condition.value } }, negated: true };
  }
  if (condition.operator === 'exists' && !condition.value) {
    return { filter: { ...filter, condition: { operator: 'exists', value: true } }, negated: true };
  }
  return { filter, negated: false };
}

/**
 * The condition that a {@link positive} filter holds at one of `places` inside the JSON text in `column`. A place
 * without ranges is the whole text.
 *
 * A value is looked at as ClickHouse writes it out again (JSONExtractRaw), which is the same for the same value: `1e+21`
 * and `-0` become `1e21` and `0`. A text that ClickHouse's parser refuses is {@link repaired} first.
 */
export function holdsAt(
  column: string,
  places: readonly Place[],
  filter: PropertyFilter,
  parameters: FilterParameters,
): string {
  const { name, condition } = filter;
  const parts = name.split('.');
  const keyOf = ({ from, to }: PartRange) => parameters.text(repairedKey(parts.slice(from, to).join('.')));
  const found = places.map((place) => extract('json', place.map(keyOf))).join(', ');
  // Repairing alters neither most names nor most values: then it makes no difference whether it was needed.
  const [json, altered] = [name, ...readingsIn(condition)].some((text) => REPAIRED.test(text))
    ? [repaired(column), '1']
    : [`if(isValidJSON(${column}), ${column}, ${repaired(column)})`, `NOT isValidJSON(${column})`];
  // The lambda makes the document once for all places; written out, each place would hold a copy of it in memory.
  // What is not there, or not to be parsed, is the empty string.
  const exact = `arrayExists((json, altered) -> arrayExists(raw -> raw != '' AND ${testOf(condition, parameters)}, [${found}]), [${json}], [${altered}])`;
  const needles = needlesOf(filter, places);
  return needles === undefined ? exact : `${containsAny(column, needles, parameters)} AND ${exact}`;
}

function containsAny(column: string, needles: readonly string[], parameters: FilterParameters): string {
  const [needle] = needles;
  return needles.length === 1 && needle !== undefined
    ? `position(${column}, ${parameters.text(needle)}) > 0`
    : `multiSearchAny(${column}, ${parameters.texts(needles)})`;
}

/** The condition that an event matches a filter. `index` tells the filters of a query apart. */
export function eventPropertyCondition(asked: PropertyFilter, index: number): Sql {
  const { filter, negated } = positive(asked);
  const parameters = new FilterParameters(index);
  const sql = holdsAt(filter.document, placesOf(filter.name), filter, parameters);
  if (negated) return { sql: `NOT (${sql})`, params: parameters.params };
  const tokens = indexTokensOf(filter);
  // Last, since it is for the index alone: few rows come so far.
  const indexed = tokens && ` AND hasAny(${TOKENS}, ${parameters.texts(tokens)})`;
  return { sql: sql + (indexed ?? ''), params: parameters.params };
}

/** What the index of `events` (0001-events.sql) holds of a document, in the very same words: its text cut at these. */
const TOKENS = `splitByChar(',', translate(properties, '{}[]', ',,,,'))`;

/**
 * Tokens of which every matching document has one; `undefined` where the index is of no use. Pairs stand between two of
 * the characters that a document is cut at; of one that has such characters in it, its longest piece has to do.
 */
function indexTokensOf(filter: PropertyFilter): readonly string[] | undefined {
  if (filter.document !== 'properties') return undefined;
  const tokens = pairsOf(filter)?.map((pair) =>
    pair.split(/[,{}[\]]/).reduce((longest, piece) => (piece.length > longest.length ? piece : longest)),
  );
  return tokens && !areTooMany(tokens) ? [...new Set(tokens)] : undefined;
}

/** What must hold of `raw`, the JSON of a value in a document, which was {@link repaired} if it is `altered`. */
function testOf(condition: Condition, parameters: FilterParameters): string {
  switch (condition.operator) {
    case 'eq':
    case 'ne':
    case 'in':
      return `hasAny([raw], JSONExtractArrayRaw(${parameters.text(`[${readingsIn(condition).map(repairedJson)}]`)}))`;
    case 'exists':
      return '1';
    case 'prefix':
      return `${IS_STRING} AND startsWith(${STRING}, ${parameters.text(condition.value)})`;
    case 'contains':
      return `${IS_STRING} AND position(${STRING}, ${parameters.text(condition.value)}) > 0`;
    default: {
      const { operator, value } = condition;
      if (typeof value === 'string')
        return `${IS_STRING} AND ${STRING} ${COMPARISONS[operator]} ${parameters.text(value)}`;
      // Both sides are read by the same exact parser, which knows large numbers with a point or an exponent only.
      const number = `JSONExtractFloat(${parameters.text(value.toExponential())})`;
      const asDouble = `match(raw, '^[-0-9]') AND JSONExtractFloat(${withPoint('raw')}) ${COMPARISONS[operator]} ${number}`;
      if (!Number.isInteger(value)) return asDouble;
      // A long integer is compared as such: as a double it would equal its neighbours.
      const integer = `toInt256(raw) ${COMPARISONS[operator]} toInt256(${parameters.text(String(value))})`;
      return Math.abs(value) < INTEGER_MAX ? `if(match(raw, '^-?[0-9]{16,19}$'), ${integer}, ${asDouble})` : asDouble;
    }
  }
}

function extract(json: string, keys: readonly string[]): string {
  return `JSONExtractRaw(${[json, ...keys].join(', ')})`;
}

/** What {@link repaired} alters other than in its spelling, in a name and in JSON text. */
const REPAIRED = /\0|\\u(?:0000|d[89a-f])|[0-9]{19}/;

/** A key as it is in a document that was {@link repaired}. */
function repairedKey(key: string): string {
  return key.replaceAll('\0', '\0' + '0000').replaceAll(/([:,[](?:-[0-9]{19,}|[0-9]{20,}))/g, '$1.0');
}

/**
 * JSON text that ClickHouse's parser takes, for one that it refuses: it knows neither lone surrogates nor integers
 * beyond 64 bits. Different texts stay different:
 * - an escaped backslash is written `\u005c`, so that every backslash left begins an escape;
 * - a lone surrogate `\ud800` becomes the character NUL and its four digits, and NUL itself becomes NUL and `0000`;
 * - an integer of 20 digits or more, or a negative one of 19, gets `.0`, which makes it a double. So do such digits after
 *   a comma, colon or bracket inside a string: always, and so without harm.
 */
function repaired(json: string): string {
  const plainBackslashes = String.raw`replaceAll(${json}, '\\\\', '\\u005c')`;
  return withPoint(
    String.raw`replaceRegexpAll(${plainBackslashes}, '\\\\u(0000|d[89a-f][0-9a-f]{2})', '\\\\u0000\\1')`,
  );
}

function withPoint(json: string): string {
  return String.raw`replaceRegexpAll(${json}, '((?:^|[:,\\[])(?:-[0-9]{19,}|[0-9]{20,}))', '\\1.0')`;
}

/** {@link repaired} of a text that is here. */
function repairedJson(json: string): string {
  return json
    .replaceAll('\\\\', String.raw`\u005c`)
    .replaceAll(/\\u(0000|d[89a-f][0-9a-f]{2})/g, String.raw`\u0000$1`)
    .replaceAll(/((?:^|[:,[])(?:-[0-9]{19,}|[0-9]{20,}))/g, '$1.0');
}

/** A string of a document that was {@link repaired} as it was before, with U+FFFD for every lone surrogate. */
function unrepaired(text: string): string {
  const withoutPoints = String.raw`replaceRegexpAll(${text}, '([:,\\[](?:-[0-9]{19,}|[0-9]{20,}))\\.0', '\\1')`;
  const replaced = String.raw`replaceRegexpAll(${withoutPoints}, '\\x00d[89a-f][0-9a-f]{2}', '\xef\xbf\xbd')`;
  return String.raw`replaceAll(${replaced}, '\x000000', '\x00')`;
}

/** Where integers are compared as doubles alone: all that are stored digit by digit and are exact here are less. */
const INTEGER_MAX = 1e20;

const IS_STRING = `startsWith(raw, '"')`;

/** The string whose JSON `raw` is. */
const STRING = `if(altered, ${unrepaired('JSONExtractString(raw)')}, JSONExtractString(raw))`;
