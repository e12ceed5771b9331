import { after, orderBy } from './event-order.ts';
import type { EventField, EventsRequest } from './events-parameters.ts';
import { type Column, fieldCondition } from './field-filter.ts';
import { eventPropertyCondition } from './property-filter.ts';
import { type Sql, tables, where } from './sql.ts';

const FIELDS: Readonly<Record<EventField, Column>> = {
  event: { sql: 'event', type: 'String' },
  uuid: { sql: 'uuid', type: 'UUID' },
  type: { sql: 'type', type: 'String' },
  userId: { sql: 'user_id', type: 'String' },
  groupId: { sql: 'group_id', type: 'String' },
  anonymousId: { sql: 'anonymous_id', type: 'String' },
  instanceId: { sql: 'instance_id', type: 'String' },
};

/** The columns of a page's rows; event-record.ts reads them in this order. */
const COLUMNS = `toString(uuid), type, event, user_id, group_id, anonymous_id, instance_id, properties, context, traits,
  toString(timestamp), toString(received_at)`;

/** A page, and one row more where there is a next page. */
export function pageQuery(request: EventsRequest, deletions: readonly Sql[]): Sql {
  const position = request.after ? [after(request.order, request.after)] : [];
  const { sql, params } = where([...conditionsOf(request), ...position, ...deletions]);
  return {
    sql: `SELECT ${COLUMNS}
FROM ${tables.events}
${sql}
${orderBy(request.order)}
LIMIT {rows:UInt64} OFFSET {offset:UInt64}`,
    params: { ...params, rows: request.limit + 1, offset: request.offset },
  };
}

/** How many records all pages of the request hold together. */
export function countQuery(request: EventsRequest, deletions: readonly Sql[]): Sql {
  const { sql, params } = where([...conditionsOf(request), ...deletions]);
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
