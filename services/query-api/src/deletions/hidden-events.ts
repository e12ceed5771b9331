import { type Sql, tables } from '../clickhouse/sql.ts';

/** Deleted users whose events may still be stored. */
const PENDING = `
SELECT user_id, max(version) AS deleted_version
FROM ${tables.pendingDeletions}
GROUP BY user_id`;

/** The same as two arrays. ClickHouse evaluates equal scalars once. */
const PENDING_ARRAYS = `(SELECT (groupArray(user_id), groupArray(toInt64(deleted_version))) FROM (${PENDING}))`;

/**
 * Holds for events that were accepted before their user was deleted. The users come first, for the index on user_id;
 * the rest is a look-up per event, so that a page reads only its own events, however many deletions are pending.
 */
export const HIDDEN_EVENTS: Sql = {
  sql: `user_id IN (SELECT user_id FROM (${PENDING}))
  AND toUnixTimestamp64Micro(received_at) <= transform(user_id, ${PENDING_ARRAYS}.1, ${PENDING_ARRAYS}.2, toInt64(-1))`,
  params: {},
};

/**
 * Returns the condition that an event is not hidden, as a list to be spread.
 *
 * @param hidden the condition that the events of pending deletions meet, if there are any
 */
export function shownConditions(hidden: Sql | undefined): readonly Sql[] {
  return hidden ? [{ ...hidden, sql: `NOT (${hidden.sql})` }] : [];
}
