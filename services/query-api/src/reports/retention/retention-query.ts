import { EVENT_COLUMNS, type FieldFilter, fieldCondition, readEvents } from '../../records/records.ts';
import { BoundParameters, type Sql, type Tables } from '../../store/store.ts';
import { eventsWithOwners, groupCondition, keyOfEvent, keyOrder, propertiesOfKeys } from '../group-key.ts';
import { EVENT_PLACE, personColumn, personSql, personsRead } from '../people.ts';
import type { RetentionPeopleRequest, RetentionRequest } from './retention-parameters.ts';

const STARTS = '{starts:Array(Int64)}';

/** The number of an event's interval, counted from 0. It is found by halving, and its number by hashing. */
const INTERVAL = `toUInt16(transform(
      roundDown(toUnixTimestamp64Milli(timestamp), ${STARTS}), ${STARTS}, range(length(${STARTS})), 0))`;

/** How many groups retention has at most. */
export const RETENTION_GROUPS_MAX = 10;

/**
 * A row of retention: the place of its group, 0 for all together, and its key; the number of a cohort's interval, a number of
 * intervals, and how many users of the cohort returned so many intervals later; {@link WHOLE_COHORT}: how many there are.
 */
export type RetentionRow = readonly [place: number, key: string, cohort: number, later: number, users: number];

/** Stands for no number of intervals: the whole cohort, whether they returned or not. */
export const WHOLE_COHORT = -1;

/**
 * Whether a user of {@link usersQuery} had a return event in the cohort's own interval. An earlier one than the first event is no
 * return.
 */
export const RETURNED_AT_ONCE = 'has(returns, cohort) AND returned_last[indexOf(returns, cohort)] >= started';

/**
 * Returns the query for retention. Its rows are {@link RetentionRow}s. What is 0 has no row.
 *
 * @param hidden the condition that the events of pending deletions meet, if there are any
 */
export function retentionQuery(tables: Tables, request: RetentionRequest, hidden: Sql | undefined): Sql {
  const { groupBy } = request;
  const users = usersQuery(tables, request, hidden);
  const key = groupBy ? 'key' : "''";
  const laters = {
    sql: `SELECT ${key} AS key, cohort, later
FROM (
  SELECT
    ${groupBy ? 'key,' : ''}
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
ARRAY JOIN laters AS later`,
    params: { ...users.params, later_max: request.periods - 1 },
  };
  if (!groupBy) {
    return {
      ...laters,
      sql: `SELECT 0 AS place, '' AS key, cohort, later, count() FROM (\n${laters.sql}\n) GROUP BY cohort, later`,
    };
  }
  return {
    sql: `SELECT place, part, cell.1, cell.2, cell.3
FROM (
SELECT
  row_number() OVER (ORDER BY whole DESC, size DESC, ${keyOrder(groupBy, 'part').join(', ')}) - 1 AS place,
  part,
  cells
FROM (
SELECT whole, part, sumIf(users, later = ${WHOLE_COHORT}) AS size, groupArray((cohort, later, users)) AS cells
FROM (
SELECT grouping(key) = 1 AS whole, if(whole, '', key) AS part, cohort, later, count() AS users
FROM (
${laters.sql}
)
GROUP BY GROUPING SETS ((cohort, later), (key, cohort, later))
)
GROUP BY whole, part
)
)
ARRAY JOIN cells AS cell
WHERE place <= {groups:UInt8}`,
    params: { ...laters.params, groups: RETENTION_GROUPS_MAX },
  };
}

/**
 * Returns the query for the persons of all cohorts: the number of the cohort's interval, when the person's first event was and the
 * key of its group, the numbers of the intervals that the person had return events in, and when the last of each was.
 *
 * @param listed the condition on those whom the query is to name; default: it tells persons apart, and names nobody
 */
export function usersQuery(tables: Tables, request: RetentionRequest, hidden: Sql | undefined, listed?: Sql): Sql {
  const { selection, cohortFilters, returnFilters, starts, groupBy } = request;
  const parameters = new BoundParameters('g');
  const keys = groupBy ? [groupBy] : [];
  const persons = personsRead({ by: request.by, areNamed: listed !== undefined }, keys);
  const read = readEvents(tables, selection, propertiesOfKeys(keys), { persons });
  const person = personSql(request, read);
  // Of all events that may be the first one, the first in the order of those of a funnel is.
  const key = groupBy ? `argMinIf(${keyOfEvent(groupBy, 0, read, parameters)}, ${EVENT_PLACE}, begins) AS key,` : '';
  const begins = nameCondition(cohortFilters, 'cohort_event');
  const returns = nameCondition(returnFilters, 'return_event');
  const params = { ...begins.params, ...returns.params };
  const { from, where } = read.selected(selection, hidden, {
    onEvents: [{ sql: `(${begins.sql}) OR (${returns.sql})`, params }],
    onPersons: [{ sql: person.exists, params: {} }, ...(listed ? [listed] : [])],
  });
  const events = eventsWithOwners(tables, from, keys);
  return {
    sql: `    WITH
      ${INTERVAL} AS interval,
      toUnixTimestamp64Milli(timestamp) AS time,
      (${begins.sql}) AS begins
    SELECT
      ${person.key} AS person,
      ${key}
      minIf(interval, begins) AS cohort,
      minIf(time, begins) AS started,
      maxMapIf([interval], [time], ${returns.sql}) AS last_returns,
      tupleElement(last_returns, 1) AS returns,
      tupleElement(last_returns, 2) AS returned_last
    FROM ${events.sql}
    ${where.sql}
    GROUP BY ${person.key}
    HAVING max(begins) = 1`,
    params: { ...events.params, ...where.params, ...params, ...parameters.params, starts },
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

/** A person, and when its first event was that makes the cohort, in milliseconds since 1970. */
export type RetentionUserRow = readonly [id: string, startedMs: number];

/**
 * Returns the query for the users behind a number of retention. Its rows are {@link RetentionUserRow}s, one more than the
 * page has.
 *
 * @param hidden the condition that the events of pending deletions meet, if there are any
 */
export function retentionPeopleQuery(tables: Tables, request: RetentionPeopleRequest, hidden: Sql | undefined): Sql {
  const { retention, cohort, period, group, page } = request;
  const after = { sql: `${personColumn(retention)} > {after:String}`, params: { after: page.afterId } };
  const users = usersQuery(tables, retention, hidden, after);
  const returned = returnedCondition(period);
  const inGroup: Sql = retention.groupBy
    ? groupCondition(retention.groupBy, 'key', group)
    : { sql: 'true', params: {} };
  return {
    sql: `SELECT person, started
FROM (
${users.sql}
)
WHERE cohort = {cohort:UInt16} AND (${returned.sql}) AND (${inGroup.sql})
ORDER BY person
LIMIT {rows:UInt64}`,
    params: { ...users.params, ...returned.params, ...inGroup.params, cohort, rows: page.limit + 1 },
  };
}

/** The condition that a user is behind the number of a period; of none, behind the size of the cohort. */
function returnedCondition(period: number | undefined): Sql {
  if (period === undefined) return { sql: 'true', params: {} };
  if (period === 0) return { sql: RETURNED_AT_ONCE, params: {} };
  return { sql: 'has(returns, {cohort:UInt16} + {period:UInt16})', params: { period } };
}
