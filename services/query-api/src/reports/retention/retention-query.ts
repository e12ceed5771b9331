import { EVENT_COLUMNS } from '../../records/events/event-columns.ts';
import { whereSelected } from '../../records/events/event-selection.ts';
import { fieldCondition } from '../../records/filters/filter-sql.ts';
import type { FieldFilter } from '../../records/filters/operators.ts';
import type { Sql } from '../../store/sql.ts';
import type { Tables } from '../../store/tables.ts';
import type { RetentionPeopleRequest, RetentionRequest } from './retention-parameters.ts';

const STARTS = '{starts:Array(Int64)}';

/** The number of an event's interval, counted from 0. It is found by halving, and its number by hashing. */
const INTERVAL = `toUInt16(transform(
      roundDown(toUnixTimestamp64Milli(timestamp), ${STARTS}), ${STARTS}, range(length(${STARTS})), 0))`;

/** Stands for no number of intervals: the whole cohort, whether they returned or not. */
export const WHOLE_COHORT = -1;

/**
 * Whether a user of {@link usersQuery} had a return event in the cohort's own interval. An earlier one than the first event is no
 * return.
 */
export const RETURNED_AT_ONCE = 'has(returns, cohort) AND returned_last[indexOf(returns, cohort)] >= started';

/**
 * Returns the query for retention. A row has the number of a cohort's interval, a number of intervals, and how many users
 * of the cohort returned so many intervals later; {@link WHOLE_COHORT}: how many there are. What is 0 has no row.
 *
 * @param hidden the condition that the events of pending deletions meet, if there are any
 */
export function retentionQuery(tables: Tables, request: RetentionRequest, hidden: Sql | undefined): Sql {
  const users = usersQuery(tables, request, hidden);
  return {
    sql: `SELECT cohort, later, count() AS users
FROM (
  SELECT
    cohort,
    arrayConcat(
      [${WHOLE_COHORT}],
      if(${RETURNED_AT_ONCE}, [0], []),
      arrayFilter(later -> later BETWEEN 1 AND {later_max:Int32}, arrayMap(returned -> returned - cohort, returns))
    ) AS laters
  FROM (
${users.sql}
  )
)
ARRAY JOIN laters AS later
GROUP BY cohort, later`,
    params: { ...users.params, later_max: request.periods - 1 },
  };
}

/**
 * Returns the query for the users of all cohorts: the number of the cohort's interval, when the user's first event was, the
 * numbers of the intervals that the user had return events in, and when the last of each was.
 *
 * @param more conditions that the events meet
 */
export function usersQuery(
  tables: Tables,
  { selection, cohortFilters, returnFilters, starts }: RetentionRequest,
  hidden: Sql | undefined,
  more: readonly Sql[] = [],
): Sql {
  const begins = nameCondition(cohortFilters, 'cohort_event');
  const returns = nameCondition(returnFilters, 'return_event');
  const params = { ...begins.params, ...returns.params };
  const selected = whereSelected(selection, hidden, [
    { sql: "user_id != ''", params: {} },
    { sql: `(${begins.sql}) OR (${returns.sql})`, params },
    ...more,
  ]);
  return {
    sql: `    WITH
      ${INTERVAL} AS interval,
      toUnixTimestamp64Milli(timestamp) AS time,
      (${begins.sql}) AS begins
    SELECT
      user_id,
      minIf(interval, begins) AS cohort,
      minIf(time, begins) AS started,
      maxMapIf([interval], [time], ${returns.sql}) AS last_returns,
      tupleElement(last_returns, 1) AS returns,
      tupleElement(last_returns, 2) AS returned_last
    FROM ${tables.events}
    ${selected.sql}
    GROUP BY user_id
    HAVING max(begins) = 1`,
    params: { ...selected.params, starts },
  };
}

/** The condition that an event's name matches filters. `name` tells their parameters apart from those of other filters. */
function nameCondition(filters: readonly FieldFilter[], name: string): Sql {
  const conditions = filters.map(({ condition }) => fieldCondition({ field: name, condition }, EVENT_COLUMNS.event));
  return {
    sql: conditions.length === 0 ? 'true' : conditions.map(({ sql }) => `(${sql})`).join(' AND '),
    params: Object.assign({}, ...conditions.map(({ params }) => params)),
  };
}

/** A user, and when its first event was that makes the cohort, in milliseconds since 1970. */
export type RetentionUserRow = readonly [id: string, startedMs: number];

/**
 * Returns the query for the users behind a number of retention. Its rows are {@link RetentionUserRow}s, one more than the
 * page has.
 *
 * @param hidden the condition that the events of pending deletions meet, if there are any
 */
export function retentionPeopleQuery(tables: Tables, request: RetentionPeopleRequest, hidden: Sql | undefined): Sql {
  const { retention, cohort, period, page } = request;
  const after = { sql: 'user_id > {after:String}', params: { after: page.afterId } };
  const users = usersQuery(tables, retention, hidden, [after]);
  const returned = returnedCondition(period);
  return {
    sql: `SELECT user_id, started
FROM (
${users.sql}
)
WHERE cohort = {cohort:UInt16} AND (${returned.sql})
ORDER BY user_id
LIMIT {rows:UInt64}`,
    params: { ...users.params, ...returned.params, cohort, rows: page.limit + 1 },
  };
}

/** The condition that a user is behind the number of a period; of none, behind the size of the cohort. */
function returnedCondition(period: number | undefined): Sql {
  if (period === undefined) return { sql: 'true', params: {} };
  if (period === 0) return { sql: RETURNED_AT_ONCE, params: {} };
  return { sql: 'has(returns, {cohort:UInt16} + {period:UInt16})', params: { period } };
}
