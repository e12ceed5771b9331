import { type Sql, tables, where } from '../clickhouse/sql.ts';
import { type Column, fieldCondition } from '../filters/field-filter.ts';
import { eventPropertyCondition } from '../filters/property-filter.ts';
import { after, orderBy, TEXT_COLUMNS } from './event-order.ts';
import type { EventField, EventsRequest } from './events-parameters.ts';

const FIELDS: Readonly<Record<EventField, Column>> = { ...TEXT_COLUMNS, uuid: { sql: 'uuid', type: 'uuid' } };

/** The columns of a page's rows; event-record.ts reads them in this order. */
const COLUMNS = `toString(uuid), type, event, user_id, group_id, anonymous_id, instance_id, properties, context, traits,
  toString(timestamp), toString(received_at)`;

/** A page, and one row more where there is a next page. `hidden` is of the events to leave out. */
export function pageQuery(request: EventsRequest, [hidden]: readonly [Sql?]): Sql {
  const position = request.after ? [after(request.order, request.after)] : [];
  const shown = hidden ? [{ ...hidden, sql: `NOT (${hidden.sql})` }] : [];
  const { sql, params } = where([...conditionsOf(request), ...position, ...shown]);
  return {
    sql: `SELECT ${COLUMNS}
FROM ${tables.events}
${sql}
${orderBy(request.order)}
LIMIT {rows:UInt64} OFFSET {offset:UInt64}`,
    params: { ...params, rows: request.limit + 1, offset: request.offset },
  };
}

/**
 * How many records all pages of the request hold together. What is hidden is counted by an index and taken off; to leave
 * it out, ClickHouse would read the user of every event. Both counts are of the same state of the table.
 */
export function countQuery(request: EventsRequest, [hidden]: readonly [Sql?]): Sql {
  const conditions = conditionsOf(request);
  const { sql, params } = count(conditions);
  if (!hidden) return { sql, params };
  const without = count([...conditions, hidden]);
  return { sql: `SELECT (${sql}) - (${without.sql})`, params: without.params };
}

function count(conditions: readonly Sql[]): Sql {
  const { sql, params } = where(conditions);
  return { sql: `SELECT count() FROM ${tables.events}\n${sql}`, params };
}

function conditionsOf({ fields, properties, startMs, endMs }: EventsRequest): Sql[] {
  const conditions = fields.map((filter) => fieldCondition(filter, FIELDS[filter.field]));
  if (startMs !== undefined) {
    conditions.push({ sql: 'timestamp >= fromUnixTimestamp64Milli({start:Int64})', params: { start: startMs } });
  }
  if (endMs !== undefined) {
    conditions.push({ sql: 'timestamp <= fromUnixTimestamp64Milli({end:Int64})', params: { end: endMs } });
  }
  return [...conditions, ...properties.map(eventPropertyCondition)];
}
