import { BoundParameters, type Sql, type SqlValue } from '../../store/store.ts';
import type { FieldFilter } from './operators.ts';
import { COMPARISON_SQL, indexPrefilter, propertyCondition, substringPrefilter } from './property-condition.ts';
import { type Place, type PropertyFilter, placesOf, toPositive } from './property-filter.ts';

// Every filter of a request becomes a condition in SQL here.

/** A column of plain values. A missing value is the empty string. */
export interface FilterColumn {
  readonly column: string;
  readonly type: 'text' | 'identifier' | 'uuid';
}

/** Times in milliseconds, inclusive; `undefined` is unbounded. */
export interface TimeRange {
  readonly startMs: number | undefined;
  readonly endMs: number | undefined;
}

/**
 * Returns the condition of a filter on a column. `eq` and `in` are written so that ClickHouse can use its indexes. A
 * missing value equals the empty string; comparisons and `prefix` never match it.
 *
 * @param compared returns SQL for what is compared with the column in place of a value that `eq`, `ne` or `in` names. Default: the value
 */
export function fieldCondition(
  { field, condition }: FieldFilter,
  { column, type }: FilterColumn,
  compared?: (value: string) => string,
): Sql {
  const sqlType = type === 'uuid' ? 'UUID' : 'String';
  // ClickHouse would compare the bare column with the sorting key, where it is the third column: it would look at every
  // granule of the workspace, and find none that it can leave out.
  const scanned = type === 'uuid' ? `identity(${column})` : column;
  const name = `${field}_${condition.operator}`;
  const bound = (sql: string, value: SqlValue): Sql => ({ sql, params: { [name]: value } });
  const indexed = (values: readonly string[], equal: Sql): Sql =>
    type === 'uuid' ? both(uuidTailIn(column, name, values), equal) : equal;
  const value = compared ? compared(`{${name}:${sqlType}}`) : `{${name}:${sqlType}}`;
  const values = `{${name}:Array(${sqlType})}`;
  switch (condition.operator) {
    case 'eq':
      return indexed([condition.value], bound(`${scanned} = ${value}`, condition.value));
    case 'ne':
      return bound(`${scanned} != ${value}`, condition.value);
    case 'in': {
      const list = compared ? `arrayMap(one -> ${compared('one')}, ${values})` : values;
      return indexed(condition.value, bound(`${scanned} IN ${list}`, condition.value));
    }
    case 'exists':
      return { sql: `${column} ${condition.value ? '!=' : '='} ''`, params: {} };
    case 'prefix':
      return bound(`startsWith(${column}, {${name}:String})`, condition.value);
    case 'contains':
      return bound(`position(${column}, {${name}:String}) > 0`, condition.value);
    default: {
      const holds = `${column} ${COMPARISON_SQL[condition.operator]} {${name}:String}`;
      return bound(`${column} != '' AND ${holds}`, condition.value);
    }
  }
}

/** The condition that the text index on uuids answers: it is on this very expression, the last six digits. */
function uuidTailIn(column: string, name: string, uuids: readonly string[]): Sql {
  const tails = `${name}_tails`;
  return {
    sql: `substring(toString(${column}), 31) IN {${tails}:Array(String)}`,
    params: { [tails]: uuids.map((uuid) => uuid.slice(30)) },
  };
}

function both(one: Sql, other: Sql): Sql {
  return { sql: `${one.sql} AND ${other.sql}`, params: { ...one.params, ...other.params } };
}

/** Returns the conditions that an event's timestamp lies in a range. */
export function timeConditions({ startMs, endMs }: TimeRange): readonly Sql[] {
  const conditions: Sql[] = [];
  if (startMs !== undefined) {
    conditions.push({ sql: 'timestamp >= fromUnixTimestamp64Milli({start:Int64})', params: { start: startMs } });
  }
  if (endMs !== undefined) {
    conditions.push({ sql: 'timestamp <= fromUnixTimestamp64Milli({end:Int64})', params: { end: endMs } });
  }
  return conditions;
}

/**
 * Returns the condition that an event matches a property filter.
 *
 * @param column holds the filter's document
 * @param prefix begins the names of its parameters: it tells the filters of one query apart
 */
export function eventPropertyCondition(requested: PropertyFilter, column: string, prefix: string): Sql {
  const { filter, negated } = toPositive(requested);
  const parameters = new BoundParameters(prefix);
  const sql = prefiltered(column, placesOf(filter.name), filter, parameters);
  if (negated) return { sql: `NOT (${sql})`, params: parameters.params };
  const indexed = indexPrefilter(filter, parameters);
  // The prefilter of the index comes last: it is for the index alone, and few rows reach it.
  return { sql: indexed === undefined ? sql : `${sql} AND ${indexed}`, params: parameters.params };
}

/** Returns the condition of a property, behind a cheaper one that leaves few documents to be parsed. */
export function prefiltered(
  column: string,
  places: readonly Place[],
  filter: PropertyFilter,
  parameters: BoundParameters,
): string {
  const exact = propertyCondition(column, places, filter, parameters);
  const prefilter = substringPrefilter(column, filter, places, parameters);
  return prefilter === undefined ? exact : `${prefilter} AND ${exact}`;
}
