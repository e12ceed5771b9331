import type { BoundParameters } from '../../store/store.ts';
import type { Condition } from './operators.ts';
import { acceptedJson, type Place, type PropertyFilter } from './property-filter.ts';

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
