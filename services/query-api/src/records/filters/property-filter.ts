import { parseExactJson, parseJson } from '@sluice/shared/text/json';
import { NAME_DOTS_MAX } from '../../http/http.ts';
import type { Condition } from './operators.ts';

/** A condition on a property: `properties.<name>[<operator>]=<value>`. */
export interface PropertyFilter<Document extends string = string> {
  /** The JSON object that holds the property: `properties`, and of an event also `context` and `traits`. */
  readonly document: Document;
  readonly name: string;
  readonly condition: Condition;
}

/** Documents are at most this deep; ClickHouse's parser refuses a value that is much deeper. */
const DEPTH_MAX = 32;

/**
 * One place where a property can be: keys that lead from object to object, each as a range over the name's segments. A
 * place without ranges is the whole document.
 */
export type Place = readonly SegmentRange[];

/** The segments `[from, to)` of a name that is split at its dots. */
export interface SegmentRange {
  readonly from: number;
  readonly to: number;
}

/**
 * Returns every place that a name can mean, since a dot either reaches into an object or is part of a key. `a.b` means
 * the key `a.b`, or the key `b` of the object `a`.
 */
export function placesOf(name: string): readonly Place[] {
  return placesFrom(0, name.split('.').length);
}

function placesFrom(from: number, end: number): SegmentRange[][] {
  if (from === end) return [[]];
  const places: SegmentRange[][] = [];
  for (let to = end; to > from; to -= 1) {
    for (const rest of placesFrom(to, end)) places.push([{ from, to }, ...rest]);
  }
  return places;
}

/** A filter that holds if any of its places does, and whether the request asked for its opposite. */
export interface PositiveFilter {
  readonly filter: PropertyFilter;
  readonly negated: boolean;
}

/** Returns what is wrong with the name of a property; `undefined` when nothing is. */
export function propertyNameError(name: string): string | undefined {
  return name.split('.').length - 1 > NAME_DOTS_MAX ? TOO_MANY_DOTS : undefined;
}

const TOO_MANY_DOTS = `the name of a property may have at most ${NAME_DOTS_MAX} dots`;

/** Turns `ne` into a negated `eq`, and `exists=false` into a negated `exists=true`. */
export function toPositive(filter: PropertyFilter): PositiveFilter {
  const { condition } = filter;
  if (condition.operator === 'ne') {
    return { filter: { ...filter, condition: { operator: 'eq', value: condition.value } }, negated: true };
  }
  if (condition.operator === 'exists' && !condition.value) {
    return { filter: { ...filter, condition: { operator: 'exists', value: true } }, negated: true };
  }
  return { filter, negated: false };
}

/** Returns the JSON of every value that an `eq`, `ne` or `in` accepts; none for other operators. */
export function acceptedJson({ operator, value }: Condition): readonly string[] {
  if (operator !== 'eq' && operator !== 'ne' && operator !== 'in') return [];
  return [value].flat().flatMap((item) => jsonOf(item));
}

/**
 * The JSON of the values that equal a parameter's text: always the string, and also the number, boolean, null, array or
 * object if the text is written as JSON.stringify writes it. So `12` equals `"12"` and `12`, and `1.0` equals `"1.0"`
 * only. A number that no 64-bit float holds is stored with all its digits, and equals the one with the same digits.
 */
function jsonOf(text: string): readonly string[] {
  const asString = JSON.stringify(text);
  try {
    const parsed = parseJson(text);
    if (typeof parsed === 'string' || isDeeper(parsed, DEPTH_MAX)) return [asString];
    if (JSON.stringify(parsed) === text || INTEGER_OF_64_BITS.test(text)) return [asString, text];
    if (typeof parsed === 'number' && JSON.isRawJSON(parseExactJson(text))) return [asString, text];
  } catch {
    // Not JSON, or too deep to be parsed: a string, then.
  }
  return [asString];
}

/** An integer that a double may not hold exactly. ClickHouse compares it digit by digit all the same. */
const INTEGER_OF_64_BITS = /^(?:[1-9]\d{15,18}|-[1-9]\d{15,17})$/;

function isDeeper(value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return false;
  return levels === 0 || Object.values(value).some((member) => isDeeper(member, levels - 1));
}
