import { z } from 'zod';
import type { Sql } from '../clickhouse/sql.ts';

/** The columns of the `events` table that hold texts, by their field of a record. */
export const TEXT_COLUMNS = {
  event: { sql: 'event', type: 'text' },
  type: { sql: 'type', type: 'text' },
  userId: { sql: 'user_id', type: 'text' },
  groupId: { sql: 'group_id', type: 'text' },
  anonymousId: { sql: 'anonymous_id', type: 'text' },
  instanceId: { sql: 'instance_id', type: 'text' },
} as const;

/** What records are ordered by. */
const COLUMNS = {
  timestamp: { sql: 'timestamp', type: 'time' },
  receivedAt: { sql: 'toUnixTimestamp64Milli(received_at)', type: 'number' },
  ...TEXT_COLUMNS,
  uuid: { sql: 'toUInt128(uuid)', type: 'uuid' },
} as const;

export const ORDER_FIELDS = Object.keys(COLUMNS) as [OrderField, ...OrderField[]];
export type OrderField = keyof typeof COLUMNS;

export interface EventOrder {
  readonly field: OrderField;
  readonly direction: 'ASC' | 'DESC';
}

/** Where a record stands in an order: the field's value, then what decides between equal ones. Times in milliseconds. */
export interface EventPosition {
  readonly value: string | number;
  readonly uuid: string;
  readonly timestampMs: number;
}

const TIME = 'fromUnixTimestamp64Milli({after_timestamp:Int64})';
const UUID = 'toUInt128({after_uuid:UUID})';

/** The value of an order's field in its cursor. */
export function positionSchema({ field }: EventOrder) {
  const { type } = COLUMNS[field];
  const value = type === 'text' ? z.string() : type === 'uuid' ? z.uuid() : z.int();
  return z
    .tuple([value, z.guid(), z.int()])
    .transform(([value, uuid, timestampMs]): EventPosition => ({ value, uuid, timestampMs }));
}

/**
 * The order of a page: the field, then the uuid as its text, then the timestamp, since an event is identified by both.
 * The columns of `timestamp` order are the sorting key of the table, so that it is read in order.
 */
export function orderBy({ field, direction }: EventOrder): string {
  return `ORDER BY ${sortingKey(field)
    .map((column) => `${column} ${direction}`)
    .join(', ')}`;
}

/** The condition that a record comes after a position. */
export function after({ field, direction }: EventOrder, position: EventPosition): Sql {
  const compare = direction === 'ASC' ? '>' : '<';
  const { type } = COLUMNS[field];
  const params = { after_uuid: position.uuid, after_timestamp: position.timestampMs };
  if (type === 'time') {
    // The comparison of the first column alone says nothing new, but finds the place by the primary key.
    const sql = `timestamp ${compare}= ${TIME} AND (timestamp, toUInt128(uuid)) ${compare} (${TIME}, ${UUID})`;
    return { sql, params };
  }
  if (type === 'uuid') return { sql: `(toUInt128(uuid), timestamp) ${compare} (${UUID}, ${TIME})`, params };
  const value = type === 'text' ? '{after_value:String}' : '{after_value:Int64}';
  return {
    sql: `(${sortingKey(field).join(', ')}) ${compare} (${value}, ${UUID}, ${TIME})`,
    params: { ...params, after_value: position.value },
  };
}

function sortingKey(field: OrderField): readonly string[] {
  const { sql, type } = COLUMNS[field];
  if (type === 'time') return ['timestamp', 'toUInt128(uuid)'];
  if (type === 'uuid') return ['toUInt128(uuid)', 'timestamp'];
  return [sql, 'toUInt128(uuid)', 'timestamp'];
}
