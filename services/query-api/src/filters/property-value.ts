import type { BoundParameters } from '../clickhouse/sql.ts';
import { extractRaw, REPAIRED, repaired, repairedKey, unrepairedJson } from './property-condition.ts';
import { placesOf } from './property-filter.ts';

/**
 * Returns SQL of the value that a property has in the JSON text in `column`, as JSON text: a string in quotes, so that
 * `"1"` and `1` differ. It is the empty string when the property is missing or `null`. Where a name can mean several
 * places, the first one that has a value counts, longer keys first.
 *
 * ClickHouse writes the value out again, in the same way for equal values: integers keep up to 19 digits, negative ones
 * 18; other numbers are 64-bit floats, as filters compare them. Objects with another order of their members are others.
 */
export function propertyValue(column: string, name: string, parameters: BoundParameters): string {
  const fixed = unrepairedJson(valueIn(repaired(column), name, parameters, repairedKey));
  const keyEnd = `${JSON.stringify(name.split('.').at(-1)).slice(1)}:`;
  const plain = valueIn(column, name, parameters, (key) => key);
  // A text that ClickHouse's parser refuses has no value for it. It rounds integers of 64 bits and more in some texts only.
  const isUnsure = `(${plain} = '' AND NOT isValidJSON(${column})) OR (length(${plain}) >= 19 AND match(${plain}, '[0-9]{19}'))`;
  const value = REPAIRED.test(name) ? fixed : `if(${isUnsure}, ${fixed}, ${plain})`;
  return `if(position(${column}, ${parameters.text(keyEnd)}) > 0, ${value}, '')`;
}

/** Returns SQL of the number that a property is, as a 64-bit float; NULL when it is missing or no number. */
export function propertyNumber(column: string, name: string, parameters: BoundParameters): string {
  return `toFloat64OrNull(${propertyValue(column, name, parameters)})`;
}

/** Returns SQL of a value as text, whose JSON is in `json`: a string as it is, any other value as JSON. */
export function textOfJson(json: string): string {
  const plainBackslashes = String.raw`replaceAll(${json}, '\\\\', '\\u005c')`;
  const wellFormed = String.raw`replaceRegexpAll(${plainBackslashes}, '\\\\ud[89a-f][0-9a-f]{2}', '\xef\xbf\xbd')`;
  return `if(startsWith(${json}, '"'), JSONExtractString(concat('[', ${wellFormed}, ']'), 1), ${json})`;
}

function valueIn(json: string, name: string, parameters: BoundParameters, keyOf: (key: string) => string): string {
  const segments = name.split('.');
  const values = placesOf(name).map((place) => {
    const keys = place.map(({ from, to }) => parameters.text(keyOf(segments.slice(from, to).join('.'))));
    return extractRaw(json, keys);
  });
  const [only = ''] = values;
  if (values.length === 1) return `if(${only} = 'null', '', ${only})`;
  return `arrayFirst(raw -> raw NOT IN ('', 'null'), [${values.join(', ')}])`;
}
