import { z } from 'zod';
import type { Sql } from '../../store/store.ts';
import { EVENT_COLUMNS, type OrderField } from './event-columns.ts';

export interface EventOrder {
  readonly field: OrderField;
  readonly direction: 'ASC' | 'DESC';
}

/**
 * Where a record stands in an order: the value of the order's field, then what decides between equal values. Times are
 * in milliseconds.
 */
export interface EventSortKey {
  readonly value: string | number;
  readonly uuid: string;
  readonly timestampMs: number;
}

/** Returns the schema of a sort key as a cursor holds it. */
export function sortKeySchema({ field }: EventOrder) {
  return z
    .tuple([valueSchema(field), z.guid(), z.int()])
    .transform(([value, uuid, timestampMs]): EventSortKey => ({ value, uuid, timestampMs }));
}

function valueSchema(field: OrderField): z.ZodType<string | number> {
  switch (EVENT_COLUMNS[field].type) {
    case 'uuid':
      return z.uuid();
    case 'text':
    case 'identifier':
      return z.string();
    default:
      return z.int();
  }
}

const UUID = 'toUInt128(uuid)';

/**
 * Returns the ORDER BY of a page: the field, then the uuid by its text, then the timestamp, since both together
 * identify an event. The columns of the order by `timestamp` are the sorting key of the table, so that it is read in
 * order.
 */
export function orderBy({ field, direction }: EventOrder): string {
  return `ORDER BY ${sortingKey(field)
    .map((expression) => `${expression} ${direction}`)
    .join(', ')}`;
}

/**
 * Returns the condition that an event comes after a sort key in an order.
 *
 * @param prefix begins the names of its parameters: it tells several conditions of one query apart
 */
export function afterSortKey({ field, direction }: EventOrder, sortKey: EventSortKey, prefix = 'after'): Sql {
  const compare = direction === 'ASC' ? '>' : '<';
  const params = { [`${prefix}_uuid`]: sortKey.uuid, [`${prefix}_timestamp`]: sortKey.timestampMs };
  const afterUuid = `toUInt128({${prefix}_uuid:UUID})`;
  const afterTime = `fromUnixTimestamp64Milli({${prefix}_timestamp:Int64})`;
  if (field === 'timestamp') {
    // The primary key finds the place, also among many events of one time: ClickHouse does not compare tuples with it.
    // The comparison of the first column alone adds nothing, but it ends the search at once where no such time is.
    const equal = `timestamp = ${afterTime} AND ${UUID} ${compare} ${afterUuid}`;
    const sql = `timestamp ${compare}= ${afterTime} AND (timestamp ${compare} ${afterTime} OR (${equal}))`;
    return { sql, params };
  }
  if (field === 'uuid') return { sql: `(${UUID}, timestamp) ${compare} (${afterUuid}, ${afterTime})`, params };
  const value = `{${prefix}_value:${EVENT_COLUMNS[field].type === 'microseconds' ? 'Int64' : 'String'}}`;
  return {
    sql: `(${sortingKey(field).join(', ')}) ${compare} (${value}, ${afterUuid}, ${afterTime})`,
    params: { ...params, [`${prefix}_value`]: sortKey.value },
  };
}

function sortingKey(field: OrderField): readonly string[] {
  if (field === 'timestamp') return ['timestamp', UUID];
  if (field === 'uuid') return [UUID, 'timestamp'];
  const { column, type } = EVENT_COLUMNS[field];
  // Records show milliseconds, so these decide.
  return [type === 'microseconds' ? `toUnixTimestamp64Milli(${column})` : column, UUID, 'timestamp'];
}
