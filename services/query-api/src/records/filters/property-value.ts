import type { BoundParameters } from '../../store/store.ts';
import { extractRaw, REPAIRED, repaired, repairedKey, unrepairedJson } from './property-condition.ts';
import { type Place, placesOf } from './property-filter.ts';

/**
 * Returns SQL of the value that a property has in the JSON text in `column`, as JSON text: a string in quotes, so that
 * `"1"` and `1` differ. It is the empty string when the property is missing or `null`. Where a name can mean several
 * places, the first one that has a value counts, longer keys first.
 *
 * ClickHouse writes the value out again, in the same way for equal values: integers keep up to 19 digits, negative ones
 * 18; other numbers are 64-bit floats, as filters compare them. Objects with another order of their members are others.
 *
 * @param places default: all that the name can mean
 */
export function propertyValue(
  column: string,
  name: string,
  parameters: BoundParameters,
  places: readonly Place[] = placesOf(name),
): string {
  const fixed = unrepairedJson(valueIn(repaired(column), name, parameters, places, repairedKey));
  if (REPAIRED.test(name)) return withoutNull(fixed);
  const plain = valueIn(column, name, parameters, places, (key) => key);
  const keyEnd = `${JSON.stringify(name.split('.').at(-1)).slice(1)}:`;
  // ClickHouse's parser refuses some texts as a whole, and rounds the long integers of others. Both are rare, so the plain
  // value is computed for every event, and the fixed one for few. A condition around all of it would compute the plain
  // value anew wherever it stands here.
  const isWhole = places.some((place) => place.length === 0);
  const mayHave = isWhole ? `${column} != ''` : `position(${column}, ${parameters.text(keyEnd)}) > 0`;
  const isRefused = `${plain} = '' AND ${mayHave} AND NOT isValidJSON(${column})`;
  const isLong = `length(${plain}) >= 19 AND match(${plain}, '[0-9]{19}')`;
  return withoutNull(`if((${isRefused}) OR (${isLong}), ${fixed}, ${plain})`);
}

/** Returns SQL of the number that a value is whose JSON is in `json`, as a 64-bit float; NULL when it is missing or no number. */
export function numberOfJson(json: string): string {
  // Of a column of low cardinality, ClickHouse would make a dictionary of the numbers.
  return `toFloat64OrNull(toString(${json}))`;
}

/** Returns SQL of a value as text, whose JSON is in `json`: a string as it is, any other value as JSON. */
export function textOfJson(json: string): string {
  const plainBackslashes = String.raw`replaceAll(${json}, '\\\\', '\\u005c')`;
  const wellFormed = String.raw`replaceRegexpAll(${plainBackslashes}, '\\\\ud[89a-f][0-9a-f]{2}', '\xef\xbf\xbd')`;
  return `if(startsWith(${json}, '"'), JSONExtractString(concat('[', ${wellFormed}, ']'), 1), ${json})`;
}

function valueIn(
  json: string,
  name: string,
  parameters: BoundParameters,
  places: readonly Place[],
  keyOf: (key: string) => string,
): string {
  const segments = name.split('.');
  const values = places.map((place) => {
    const keys = place.map(({ from, to }) => parameters.text(keyOf(segments.slice(from, to).join('.'))));
    return extractRaw(json, keys);
  });
  const [only = ''] = values;
  return values.length === 1 ? only : `arrayFirst(raw -> raw NOT IN ('', 'null'), [${values.join(', ')}])`;
}

/** SQL of a value as {@link propertyValue} returns it: the empty string where it is `null`. */
export function withoutNull(json: string): string {
  return `transform(${json}, ['null'], [''])`;
}
