import { after, orderBy } from './event-order.ts';
import { EQUALITY_FILTERS, type EventsRequest } from './events-parameters.ts';
import { eventPropertyCondition } from './property-filter.ts';
import { type Sql, tables, where } from './sql.ts';

/** The conditions of the equality filters. */
const EQUALITY: Readonly<Record<(typeof EQUALITY_FILTERS)[number], string>> = {
  event: 'event = {event:String}',
  uuid: 'uuid = {uuid:UUID}',
  type: 'type = {type:String}',
  userId: 'user_id = {userId:String}',
  groupId: 'group_id = {groupId:String}',
  anonymousId: 'anonymous_id = {anonymousId:String}',
  instanceId: 'instance_id = {instanceId:String}',
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

function conditionsOf({ filters, properties, startMs, endMs }: EventsRequest): Sql[] {
  const conditions: Sql[] = [];
  for (const name of EQUALITY_FILTERS) {
    const value = filters[name];
    if (value !== undefined) conditions.push({ sql: EQUALITY[name], params: { [name]: value } });
  }
  if (startMs !== undefined) {
    conditions.push({ sql: 'timestamp >= fromUnixTimestamp64Milli({start:Int64})', params: { start: startMs } });
  }
  if (endMs !== undefined) {
    conditions.push({ sql: 'timestamp <= fromUnixTimestamp64Milli({end:Int64})', params: { end: endMs } });
  }
  return [...conditions, ...properties.map(eventPropertyCondition)];
}
