import { TOTAL_CAP } from '../../http/http.ts';
import { type Sql, shownConditions, type Tables, where } from '../../store/store.ts';
import { type TimeRange, timeConditions } from '../filters/filter-sql.ts';
import { OWNERS } from '../owners/owners.ts';
import { afterSortKey, type EventSortKey, orderBy } from './event-order.ts';
import { EVENT_SELECT } from './event-record.ts';
import { filterConditions, ownersIn, selectionConditions, whereSelected } from './event-selection.ts';
import type { EventsRequest, FewOwners, PageRequest } from './events-parameters.ts';

/** A range of a page's list, and the rows of it that a query returns. */
export interface PageSlice extends TimeRange {
  readonly after: EventSortKey | undefined;
  readonly rows: number;
  readonly offset: number;
  /** Whether it is a window of the list, which probably has not many events. */
  readonly isWindow?: boolean;
}

/** Returns the slice that holds a page, and one row more if there is a next page. */
export function wholePage({ startMs, endMs, after, limit, offset }: PageRequest): PageSlice {
  return { startMs, endMs, after, rows: limit + 1, offset };
}

/**
 * Returns the query for a page, or for a slice of its list.
 *
 * @param hidden the condition that the events of pending deletions meet, if there are any
 * @param select the SELECT list
 */
export function pageQuery(
  tables: Tables,
  request: PageRequest,
  hidden: Sql | undefined,
  slice = wholePage(request),
  select = EVENT_SELECT,
): Sql {
  const afterLast = slice.after ? [afterSortKey(request.order, slice.after)] : [];
  const times = timeConditions(slice);
  const identifiers = (column: string): Sql => {
    const { sql, params } = where(times);
    return { sql: `SELECT ${column} FROM ${tables.events} ${sql}`, params };
  };
  // Other servers would not see the same state: an event that arrives meanwhile would have an owner that was not looked at.
  const isWithin = slice.isWindow && !tables.onSeveralServers;
  const owners = { ...ownersIn(tables, hidden), ...(isWithin && { within: { identifiers, areFew: false } }) };
  const { sql, params } = where([
    ...ofFewOwners(request.owners ?? []),
    ...filterConditions(request, owners),
    ...times,
    ...afterLast,
    ...shownConditions(hidden),
  ]);
  return {
    sql: `SELECT ${select}
FROM ${tables.eventsByUuid}
${sql}
${orderBy(request.order)}
LIMIT {rows:UInt64} OFFSET {offset:UInt64}`,
    params: { ...params, rows: slice.rows, offset: slice.offset },
  };
}

function ofFewOwners(owners: readonly FewOwners[]): readonly Sql[] {
  return owners.map(({ owner, ids }, index) => ({
    sql: `${OWNERS[owner].column} IN {o${index}:Array(String)}`,
    params: { [`o${index}`]: ids },
  }));
}

/**
 * Holds for every event. With a condition on the time, ClickHouse counts a workspace by the sorting key, which reads a few
 * rows of each part. Without one, it would add up all rows of the projection `by_day`.
 */
const ANY_TIME: Sql = { sql: "timestamp >= '1900-01-01'", params: {} };

/**
 * Returns the query for the number of records on all pages of the request. It counts hidden events by an index and
 * subtracts them; to leave them out, ClickHouse would read the user of every event. Both counts see the same state of
 * the table.
 */
export function countQuery(tables: Tables, request: EventsRequest, hidden: Sql | undefined): Sql {
  const conditions = selectionConditions(request, ownersIn(tables, hidden));
  const counted = conditions.length === 0 ? [ANY_TIME] : conditions;
  if (!hidden) return count(tables.eventsByUuid, counted);
  // Of other servers, the two counts would not see the same state.
  if (tables.onSeveralServers) return count(tables.events, [...counted, ...shownConditions(hidden)]);
  const all = count(tables.events, counted);
  const alsoHidden = count(tables.events, [...conditions, hidden]);
  return { sql: `SELECT (${all.sql}) - (${alsoHidden.sql})`, params: alsoHidden.params };
}

/** Returns the query for the same number as {@link countQuery}, which stops one above {@link TOTAL_CAP}. */
export function cappedCountQuery(tables: Tables, request: EventsRequest, hidden: Sql | undefined): Sql {
  const { sql, params } = whereSelected(tables, request, hidden);
  return {
    sql: `SELECT count() FROM (SELECT 1 FROM ${tables.events}\n${sql}\nLIMIT {counted:UInt64})`,
    params: { ...params, counted: TOTAL_CAP + 1 },
  };
}

function count(events: string, conditions: readonly Sql[]): Sql {
  const { sql, params } = where(conditions);
  return { sql: `SELECT count() FROM ${events}\n${sql}`, params };
}
