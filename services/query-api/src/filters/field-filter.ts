import type { Sql, SqlValue } from '../clickhouse/sql.ts';
import { COMPARISONS, type Condition } from './operators.ts';

/** A condition on a field of a record. */
export interface FieldFilter<Field extends string = string> {
  readonly field: Field;
  readonly condition: Condition;
}

/** A column of plain values. A field that was not given is the empty string in it. */
export interface Column {
  readonly sql: string;
  readonly type: 'text' | 'uuid';
}

/**
 * The condition on a column. Equality and lists are said in the way that lets ClickHouse use its indexes. What was not
 * given is before, and begins with, nothing at all; but it does equal the empty string.
 */
export function fieldCondition({ field, condition }: FieldFilter, { sql: column, type: kind }: Column): Sql {
  const type = kind === 'uuid' ? 'UUID' : 'String';
  const name = `${field}_${condition.operator}`;
  const bound = (sql: string, value: SqlValue): Sql => ({ sql, params: { [name]: value } });
  const found = (values: readonly string[], equal: Sql): Sql =>
    kind === 'uuid' ? both(tailIn(column, name, values), equal) : equal;
  switch (condition.operator) {
    case 'eq':
      return found([condition.value], bound(`${column} = {${name}:${type}}`, condition.value));
    case 'ne':
      return bound(`${column} != {${name}:${type}}`, condition.value);
    case 'in':
      return found(condition.value, bound(`${column} IN {${name}:Array(${type})}`, condition.value));
    case 'exists':
      return { sql: `${column} ${condition.value ? '!=' : '='} ''`, params: {} };
    case 'prefix':
      return bound(`startsWith(${column}, {${name}:String})`, condition.value);
    case 'contains':
      return bound(`position(${column}, {${name}:String}) > 0`, condition.value);
    default: {
      const compared = `${column} ${COMPARISONS[condition.operator]} {${name}:String}`;
      return bound(`${column} != '' AND ${compared}`, condition.value);
    }
  }
}

/** What finds UUIDs: the index of `events` (0001-events.sql) is on this very expression, their last five digits. */
function tailIn(column: string, name: string, uuids: readonly string[]): Sql {
  const tails = `${name}_tails`;
  return {
    sql: `substring(toString(${column}), 32) IN {${tails}:Array(String)}`,
    params: { [tails]: uuids.map((uuid) => uuid.slice(31)) },
  };
}

function both(one: Sql, other: Sql): Sql {
  return { sql: `${one.sql} AND ${other.sql}`, params: { ...one.params, ...other.params } };
}
