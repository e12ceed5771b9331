import type { Sql } from '../clickhouse/sql.ts';
import type { Tables } from '../clickhouse/tables.ts';

// A deleted user is hidden from the moment the deletion is stored, although the rows of the user are erased later:
//
// - Events: each query leaves out those that were accepted before the deletion of their user, by the condition below.
//   PendingDeletions says for which workspaces that is needed at all.
// - Users and organizations: who reads them compares versions with the last deletion of the user (last-deletions.ts).
//   Of users who came back, only what was submitted since then counts (returned-users.ts).

/**
 * Returns the condition that the events of deleted users meet until they are erased: they were accepted before their user
 * was deleted. The users come first, for the index on user_id; the rest is a look-up per event, so that a page reads only
 * its own events, however many deletions are pending.
 */
export function hiddenEvents(tables: Tables): Sql {
  return deletedBefore(tables, 'toUnixTimestamp64Micro(received_at)');
}

/** The same for dead letters, which have the version of their row. */
export function hiddenDeadLetters(tables: Tables): Sql {
  return deletedBefore(tables, 'version');
}

function deletedBefore(tables: Tables, version: string): Sql {
  const pending = `
SELECT user_id, max(version) AS deleted_version
FROM ${tables.pendingDeletions}
GROUP BY user_id`;
  // ClickHouse evaluates equal scalars once.
  const arrays = `(SELECT (groupArray(user_id), groupArray(toInt64(deleted_version))) FROM (${pending}))`;
  return {
    sql: `user_id GLOBAL IN (SELECT user_id FROM (${pending}))
  AND ${version} <= transform(user_id, ${arrays}.1, ${arrays}.2, toInt64(-1))`,
    params: tables.params,
  };
}

/**
 * Returns the condition that an event is not hidden, as a list to be spread.
 *
 * @param hidden the condition that the events of pending deletions meet, if there are any
 */
export function shownConditions(hidden: Sql | undefined): readonly Sql[] {
  return hidden ? [{ ...hidden, sql: `NOT (${hidden.sql})` }] : [];
}
