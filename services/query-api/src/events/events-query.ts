import { type Sql, tables, where } from '../clickhouse/sql.ts';
import { eventPropertyCondition, fieldCondition, timeConditions } from '../filters/filter-sql.ts';
import { EVENT_COLUMNS } from './event-columns.ts';
import { afterPosition, orderBy } from './event-order-sql.ts';
import { EVENT_SELECT } from './event-record.ts';
import type { EventsRequest } from './events-parameters.ts';

/**
 * Returns the query for a page, and one row more if there is a next page.
 *
 * @param hidden the condition that the events of pending deletions meet, if there are any
 */
export function pageQuery(request: EventsRequest, hidden: Sql | undefined): Sql {
  const position = request.after ? [afterPosition(request.order, request.after)] : [];
  const shown = hidden ? [{ ...hidden, sql: `NOT (${hidden.sql})` }] : [];
  const { sql, params } = where([...conditionsOf(request), ...position, ...shown]);
  return {
    sql: `SELECT ${EVENT_SELECT}
FROM ${tables.events}
${sql}
${orderBy(request.order)}
LIMIT {rows:UInt64} OFFSET {offset:UInt64}`,
    params: { ...params, rows: request.limit + 1, offset: request.offset },
  };
}

/**
 * Returns the query for the number of records on all pages of the request. It counts hidden events by an index and
 * subtracts them; to leave them out, ClickHouse would read the user of every event. Both counts see the same state of
 * the table.
 */
export function countQuery(request: EventsRequest, hidden: Sql | undefined): Sql {
  const conditions = conditionsOf(request);
  const all = count(conditions);
  if (!hidden) return all;
  const alsoHidden = count([...conditions, hidden]);
  return { sql: `SELECT (${all.sql}) - (${alsoHidden.sql})`, params: alsoHidden.params };
}

function count(conditions: readonly Sql[]): Sql {
  const { sql, params } = where(conditions);
  return { sql: `SELECT count() FROM ${tables.events}\n${sql}`, params };
}

function conditionsOf({ fields, properties, ...range }: EventsRequest): readonly Sql[] {
  return [
    ...fields.map((filter) => fieldCondition(filter, EVENT_COLUMNS[filter.field])),
    ...timeConditions(range),
    ...properties.map((filter, index) => eventPropertyCondition(filter, EVENT_COLUMNS[filter.document].column, index)),
  ];
}
