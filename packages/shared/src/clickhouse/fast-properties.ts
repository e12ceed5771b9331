// Fast properties: values of declared properties in columns of their own (docs/design/decisions/0113-fast-properties.md).

/** How many properties of events a workspace may declare. The table `events` has a column for each. */
export const FAST_PROPERTIES_MAX = 16;

/** How many of these columns, the first ones, are dictionaries: for properties with few different values. The others are for those with many. */
export const DICTIONARIES_MAX = 8;

/** Stands in a column for a value that the text of `properties` says. No JSON is this text. */
export const TEXT_SAYS = '?';

/** Longer values stay in the text, in bytes of JSON. */
const VALUE_BYTES_MAX = 256;

/** Returns the name of a column, of which the first is 1. */
export function fastColumn(column: number): string {
  return `fast_${column}`;
}

/** All columns of the table `events` that follow from its others and from declarations. Servers need not have them alike. */
export const FAST_COLUMNS: readonly string[] = [
  'fast_set',
  ...Array.from({ length: FAST_PROPERTIES_MAX }, (_, index) => fastColumn(index + 1)),
];

/** The bits of `fast_set` that say of which columns the text has to be read, from the lowest for the first column on. */
const TEXT_BITS = (1n << BigInt(FAST_PROPERTIES_MAX)) - 1n;

/** The other bits: the list of names. */
export const LIST_BITS = ((1n << 64n) - 1n) ^ TEXT_BITS;

/** SQL of the list that filled the columns of a row, as `row_set` of `console_fast_properties` has it; 0: none did. */
export const FAST_LIST = `bitAnd(fast_set, ${LIST_BITS})`;

/**
 * Returns SQL of what columns have for properties, as an array: of each what JSONExtractRaw gives, by which reports and filters read the text;
 * the empty string where the property is missing. {@link TEXT_SAYS} where the text is read in another way than by that alone: of arrays
 * and objects, and of long integers. Of texts that ClickHouse refuses it means nothing: {@link fastSet} says so.
 *
 * ClickHouse evaluates JSONExtractRaw once for each in this form, and once for each mention within nested conditions.
 *
 * @param json an expression for the text of an object
 * @param names expressions for the names of the properties, which have no dot; empty: of none
 */
export function fastValues(json: string, names: readonly string[]): string {
  const isOfText = `length(raw) > ${VALUE_BYTES_MAX} OR startsWith(raw, '[') OR startsWith(raw, '{')
      OR length(raw) >= 19 AND match(raw, '[0-9]{19}')`;
  const raws = names.map((name) => `JSONExtractRaw(${json}, ${name})`);
  return `arrayMap((raw, name) -> multiIf(name = '', '', ${isOfText}, '${TEXT_SAYS}', raw),
    [${raws.join(', ')}], [${names.join(', ')}])`;
}

/**
 * Returns SQL of `fast_set` of a row: the list that fills its columns, and the columns of which the text has to be read.
 *
 * @param list an expression for the list of 64 bits; 0: none
 * @param json an expression for the text of the object
 * @param values an expression for what {@link fastValues} gives for `columns`
 */
export function fastSet(list: string, json: string, values: string, columns: readonly number[]): string {
  const bits = columns.map(columnBit).join(', ');
  const ofText = `arraySum((value, bit) -> if(value = '${TEXT_SAYS}', bit, 0), ${values}, [${bits}])`;
  // Of a text that ClickHouse refuses, each value is empty.
  const refused = `if(has(${values}, ''), if(isValidJSON(${json}), 0, ${TEXT_BITS}), 0)`;
  return `if(${list} = 0, 0, bitOr(${list}, bitOr(${refused}, ${ofText})))`;
}

/**
 * Returns the condition that columns of a row say the values of their properties.
 *
 * @param lists numbers of 64 bits, at least one, that have these properties in these columns
 */
export function areFilled(columns: readonly number[], lists: readonly string[]): string {
  const bits = columns.reduce((all, column) => all | columnBit(column), LIST_BITS);
  // Of three and more, ClickHouse makes a set by itself.
  return lists.map((list) => `bitAnd(fast_set, ${bits}) = ${BigInt(list)}`).join(' OR ');
}

/** Returns the bit of `fast_set` that says that the text has to be read for a column. */
export function columnBit(column: number): bigint {
  return 1n << BigInt(column - 1);
}

/** Returns the columns that one of some lists of names has a property in, counted from 1. */
export function usedColumns(lists: readonly (readonly string[])[]): readonly number[] {
  const columns = Array.from({ length: FAST_PROPERTIES_MAX }, (_, index) => index + 1);
  return columns.filter((column) => lists.some((names) => names[column - 1]));
}
