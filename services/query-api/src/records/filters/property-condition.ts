import type { BoundParameters } from '../../store/store.ts';
import type { Comparison, Condition } from './operators.ts';
import { acceptedJson, type Place, type PropertyFilter, type SegmentRange } from './property-filter.ts';

/** The comparing operators as SQL writes them. */
export const COMPARISON_SQL: Readonly<Record<Comparison, string>> = { lt: '<', lte: '<=', gt: '>', gte: '>=' };

/**
 * Integers of at least this size are compared as doubles alone: the long ones that are stored digit by digit are less.
 */
const INTEGER_MAX = 1e20;

/**
 * Returns the SQL condition that a positive filter holds at one of `places` inside the JSON text in `column`.
 *
 * It compares a value as ClickHouse writes it out again (JSONExtractRaw), which is the same for equal values: `1e+21`
 * and `-0` become `1e21` and `0`. A text that ClickHouse's parser refuses is {@link repaired} first.
 */
export function propertyCondition(
  column: string,
  places: readonly Place[],
  { name, condition }: PropertyFilter,
  parameters: BoundParameters,
): string {
  const segments = name.split('.');
  const keyOf = ({ from, to }: SegmentRange) => parameters.text(repairedKey(segments.slice(from, to).join('.')));
  const values = places.map((place) => extractRaw('json', place.map(keyOf))).join(', ');
  // Repairing changes neither most names nor most values: then it makes no difference whether it was needed.
  const [json, altered] = [name, ...acceptedJson(condition)].some((text) => REPAIRED.test(text))
    ? [repaired(column), '1']
    : [`if(isValidJSON(${column}), ${column}, ${repaired(column)})`, `NOT isValidJSON(${column})`];
  // The lambda computes the document once for all places. Written out, each place would hold a copy of it in memory.
  // A value that is missing or cannot be parsed is the empty string.
  return `arrayExists((json, altered) -> arrayExists(raw -> raw != '' AND ${valueCondition(condition, parameters)}, [${values}]), [${json}], [${altered}])`;
}

/** SQL of the value at a path of keys, as ClickHouse writes it out again; the empty string when there is none. */
export function extractRaw(json: string, keys: readonly string[]): string {
  return `JSONExtractRaw(${[json, ...keys].join(', ')})`;
}

/**
 * Returns the condition that a positive filter holds for the JSON of a value that is neither an array nor an object, as ClickHouse writes it
 * out of a text that it does not refuse.
 *
 * @param raw an expression for the JSON; the empty string where there is no value
 */
export function plainValueCondition(raw: string, condition: Condition, parameters: BoundParameters): string {
  if (condition.operator !== 'eq' && condition.operator !== 'in') {
    return `${raw} != '' AND ${valueCondition(condition, parameters, { raw, altered: '0' })}`;
  }
  return `${raw} IN ${acceptedValues(condition, parameters)}`;
}

/** SQL of the JSON of the values that an `eq`, `ne` or `in` accepts, each as ClickHouse writes it out again. */
function acceptedValues(condition: Condition, parameters: BoundParameters): string {
  return `JSONExtractArrayRaw(${parameters.text(`[${acceptedJson(condition).map(repairedJson)}]`)})`;
}

/** Expressions for the JSON of a value in a document, and for whether that is {@link repaired}. */
interface ValueColumns {
  readonly raw: string;
  readonly altered: string;
}

const OF_LAMBDA: ValueColumns = { raw: 'raw', altered: 'altered' };

function valueCondition(condition: Condition, parameters: BoundParameters, columns = OF_LAMBDA): string {
  const { raw } = columns;
  const isString = `startsWith(${raw}, '"')`;
  const string = stringOf(columns);
  switch (condition.operator) {
    case 'eq':
    case 'ne':
    case 'in': {
      const accepted = acceptedValues(condition, parameters);
      const acceptedItems = itemsOf(`concat('[', arrayStringConcat(${accepted}, ','), ']')`);
      // An array equals a value also when one of its items does.
      return `(hasAny([${raw}], ${accepted}) OR startsWith(${raw}, '[') AND hasAny(${itemsOf(raw)}, ${acceptedItems}))`;
    }
    case 'exists':
      return '1';
    case 'prefix':
      return `${isString} AND startsWith(${string}, ${parameters.text(condition.value)})`;
    case 'contains':
      return `${isString} AND position(${string}, ${parameters.text(condition.value)}) > 0`;
    default: {
      const { operator, value } = condition;
      const sign = COMPARISON_SQL[operator];
      if (typeof value === 'string') return `${isString} AND ${string} ${sign} ${parameters.text(value)}`;
      // One parser reads both sides exactly. It knows large numbers with a point or an exponent only.
      const number = `JSONExtractFloat(${parameters.text(value.toExponential())})`;
      const asDouble = `match(${raw}, '^[-0-9]') AND JSONExtractFloat(${withPoint(raw)}) ${sign} ${number}`;
      if (!Number.isInteger(value)) return asDouble;
      // A long integer is compared as an integer: as a double it would equal its neighbours.
      const asInteger = `toInt256(${raw}) ${sign} toInt256(${parameters.text(String(value))})`;
      return Math.abs(value) < INTEGER_MAX
        ? `if(match(${raw}, '^-?[0-9]{16,19}$'), ${asInteger}, ${asDouble})`
        : asDouble;
    }
  }
}

/** A name or a JSON text that {@link repaired} changes in more than its spelling. */
export const REPAIRED = /\0|\\u(?:0000|d[89a-f])|[0-9]{19}/;

/** A key as it is in a {@link repaired} document. */
export function repairedKey(key: string): string {
  return key.replaceAll('\0', '\0' + '0000').replaceAll(/([:,[](?:-[0-9]{19,}|[0-9]{20,}))/g, '$1.0');
}

/**
 * SQL that rewrites JSON which ClickHouse's parser refuses: it knows neither lone surrogates nor integers beyond 64
 * bits. Different texts stay different:
 * - an escaped backslash is written `\u005c`, so that every backslash left begins an escape;
 * - a lone surrogate `\ud800` becomes the character NUL and its four digits, and NUL itself becomes NUL and `0000`;
 * - an integer of 20 digits or more, or a negative one of 19, gets `.0`, which makes it a double. So do such digits
 *   after a comma, colon or bracket inside a string; they get it in every text, so it does no harm.
 */
export function repaired(json: string): string {
  const plainBackslashes = String.raw`replaceAll(${json}, '\\\\', '\\u005c')`;
  return withPoint(
    String.raw`replaceRegexpAll(${plainBackslashes}, '\\\\u(0000|d[89a-f][0-9a-f]{2})', '\\\\u0000\\1')`,
  );
}

/** SQL of the JSON of the items of an array. Its large numbers have no point any more, and are parsed once more. */
function itemsOf(raw: string): string {
  return `JSONExtractArrayRaw(${withPoint(raw)})`;
}

function withPoint(json: string): string {
  return String.raw`replaceRegexpAll(${json}, '((?:^|[:,\\[])(?:-[0-9]{19,}|[0-9]{20,}))', '\\1.0')`;
}

/** {@link repaired}, of a text in this process. */
function repairedJson(json: string): string {
  return json
    .replaceAll('\\\\', String.raw`\u005c`)
    .replaceAll(/\\u(0000|d[89a-f][0-9a-f]{2})/g, String.raw`\u0000$1`)
    .replaceAll(/((?:^|[:,[])(?:-[0-9]{19,}|[0-9]{20,}))/g, '$1.0');
}

/** SQL that undoes {@link repaired} in a string of the document, with U+FFFD for every lone surrogate. */
function unrepaired(text: string): string {
  const withoutPoints = String.raw`replaceRegexpAll(${text}, '([:,\\[](?:-[0-9]{19,}|[0-9]{20,}))\\.0', '\\1')`;
  const replaced = String.raw`replaceRegexpAll(${withoutPoints}, '\\x00d[89a-f][0-9a-f]{2}', '\xef\xbf\xbd')`;
  return String.raw`replaceAll(${replaced}, '\x000000', '\x00')`;
}

/** SQL that undoes {@link repaired} in the JSON of a value of the document. */
export function unrepairedJson(json: string): string {
  const plainBackslashes = String.raw`replaceAll(${json}, '\\\\', '\\u005c')`;
  const withoutPoints = String.raw`replaceRegexpAll(${plainBackslashes}, '([:,\\[](?:-[0-9]{19,}|[0-9]{20,}))\\.0', '\\1')`;
  const surrogates = String.raw`replaceRegexpAll(${withoutPoints}, '\\\\u0000(d[89a-f][0-9a-f]{2})', '\\\\u\\1')`;
  const nul = String.raw`replaceAll(${surrogates}, '\\u00000000', '\\u0000')`;
  return String.raw`replaceAll(${nul}, '\\u005c', '\\\\')`;
}

/** SQL of the string whose JSON is in a column. */
function stringOf({ raw, altered }: ValueColumns): string {
  return `if(${altered}, ${unrepaired(`JSONExtractString(${raw})`)}, JSONExtractString(${raw}))`;
}

// Prefilters: every matching document contains one of some texts. Searching for text is many times cheaper than parsing
// JSON, and a text index can do it. False positives are fine, since the exact condition follows; false negatives are
// not.

/** How many texts ClickHouse can search for at once, and how long they may be together: a parameter has 128 KiB. */
const TEXTS_MAX = 255;
const TEXT_CHARACTERS_MAX = 32 * 1_024;

/**
 * Returns SQL that holds for every text in `column` in which the filter holds at one of `places`; `undefined` when
 * there is nothing to search for.
 */
export function substringPrefilter(
  column: string,
  { name, condition }: PropertyFilter,
  places: readonly Place[],
  parameters: BoundParameters,
): string | undefined {
  // All keys that a value can have end alike. A value that is the whole text has no key.
  const isWhole = places.some((place) => place.length === 0);
  const keyEnd = isWhole ? '' : `${escaped(name.split('.').at(-1) ?? '')}":`;
  const all = substringsOf(condition, keyEnd);
  const substrings = areTooMany(all) ? [keyEnd] : all;
  if (substrings.includes('')) return undefined;
  const [substring] = substrings;
  return substrings.length === 1 && substring !== undefined
    ? `position(${column}, ${parameters.text(substring)}) > 0`
    : `multiSearchAny(${column}, ${parameters.texts(substrings)})`;
}

/** The expression of the text index of `events`, word for word: `properties` cut at these characters. */
const TOKENS = `splitByChar(',', translate(properties, '{}[]', ',,,,'))`;

/**
 * Returns SQL that the text index of `events` can answer, and that holds for every event that matches an `eq` or an
 * `in` on `properties`; `undefined` where the index is of no use.
 */
export function indexPrefilter(filter: PropertyFilter, parameters: BoundParameters): string | undefined {
  if (filter.document !== 'properties') return undefined;
  // The index cuts a document at brackets and commas. A text that has some inside is found by its longest piece.
  const tokens = searchedTexts(filter)?.map(longestPiece);
  if (!tokens || areTooMany(tokens)) return undefined;
  return `hasAny(${TOKENS}, ${parameters.texts([...new Set(tokens)])})`;
}

/**
 * Returns texts of which every document contains one that matches an `eq` or an `in`: `"<key>":<json>`, or the JSON
 * alone, as an item of an array. They are as JSON.stringify writes documents (except that `-0` keeps its sign).
 * `undefined` for other operators, and where a value can be an array or an object.
 */
export function searchedTexts({ name, condition }: PropertyFilter): readonly string[] | undefined {
  const texts = equalTextsOf(condition);
  const segments = name.split('.');
  const keys = segments.map((_, from) => JSON.stringify(segments.slice(from).join('.')));
  return texts && [...keys.flatMap((key) => texts.map((text) => `${key}:${text}`)), ...texts];
}

/** Returns the longest piece of a text that is cut at brackets and commas, as the text indexes cut JSON. */
export function longestPiece(text: string): string {
  return text.split(/[,{}[\]]/).reduce((longest, piece) => (piece.length > longest.length ? piece : longest));
}

/**
 * Returns how documents write the values that an `eq` or an `in` accepts; `undefined` for other operators, and where a
 * value can be an array or an object.
 */
export function equalTextsOf(condition: Condition): readonly string[] | undefined {
  if (condition.operator !== 'eq' && condition.operator !== 'in') return undefined;
  const accepted = acceptedJson(condition);
  // Inside arrays and objects a negative zero is written as -0, but compares as 0.
  if (accepted.some((json) => json.startsWith('{') || json.startsWith('['))) return undefined;
  return [...new Set(accepted.includes('0') ? [...accepted, '-0'] : accepted)];
}

function substringsOf(condition: Condition, keyEnd: string): readonly string[] {
  switch (condition.operator) {
    case 'prefix':
      return [`${keyEnd}"${escapedStart(condition.value)}`];
    case 'contains':
      return [escapedStart(condition.value) || `${keyEnd}"`];
    default:
      // The value of the key, or an item of an array: behind its bracket, or behind another item.
      return (
        equalTextsOf(condition)?.flatMap((text) =>
          keyEnd === '' ? [text] : [`${keyEnd}${text}`, `[${text}`, `,${text}`],
        ) ?? [keyEnd]
      );
  }
}

/** Whether these are more texts than one condition may search for. */
export function areTooMany(texts: readonly string[]): boolean {
  return texts.length > TEXTS_MAX || texts.reduce((sum, { length }) => sum + length, 0) > TEXT_CHARACTERS_MAX;
}

/** Text as it is inside a JSON string. */
function escaped(text: string): string {
  return JSON.stringify(text).slice(1, -1);
}

/** The part before the first U+FFFD, which also stands for a lone surrogate: documents hold that one as an escape. */
function escapedStart(text: string): string {
  return escaped(text.split('\ufffd')[0] ?? '');
}
