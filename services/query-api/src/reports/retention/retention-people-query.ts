import type { Sql } from '../../store/sql.ts';
import type { Tables } from '../../store/tables.ts';
import type { RetentionPeopleRequest } from './retention-people-parameters.ts';
import { RETURNED_AT_ONCE, usersQuery } from './retention-query.ts';

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
