import type { Sql } from '../../clickhouse/sql.ts';
import type { Tables } from '../../clickhouse/tables.ts';
import type { RetentionPeopleRequest } from './retention-people-parameters.ts';
import { usersQuery } from './retention-query.ts';

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
  return {
    sql: `SELECT user_id, started
FROM (
${users.sql}
)
WHERE cohort = {cohort:UInt16} AND ({period:UInt16} = 0 OR has(returns, {cohort:UInt16} + {period:UInt16}))
ORDER BY user_id
LIMIT {rows:UInt64}`,
    params: { ...users.params, cohort, period, rows: page.limit + 1 },
  };
}
