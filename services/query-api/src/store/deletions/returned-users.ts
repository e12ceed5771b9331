import type { Sql } from '../sql.ts';
import type { Tables } from '../tables.ts';
import { lastDeletions } from './last-deletions.ts';

// Users who came back after their deletion: they count from the first submission since then. In the row of a user in
// `entities`, `other_id` is the version of the deletion after which the row begins, or empty. Rows that begin after the last
// deletion have the times since then. The writer of another one did not know it, so the row may hold times from before; the
// erasure puts that right.

/** Returns the query for the users who came back after a deletion that is still pending. */
export function returnedUsersQuery(tables: Tables): Sql {
  return {
    sql: `SELECT seen.id
FROM (
  SELECT id, toInt64(max(version)) AS newest_version
  FROM ${tables.entities}
  WHERE kind = 'user' AND id GLOBAL IN (SELECT user_id FROM ${tables.pendingDeletions})
  GROUP BY id
) AS seen
GLOBAL INNER JOIN (
  SELECT user_id AS id, toInt64(max(version)) AS deleted_version
  FROM ${tables.pendingDeletions}
  GROUP BY user_id
) AS deletions ON deletions.id = seen.id
WHERE newest_version > deleted_version`,
    params: {},
  };
}

/**
 * Returns the query for the rows of users: identifier, when they were first and last seen, in milliseconds, the version of
 * the last change, in microseconds, and that of the deletion after which the row begins, 0 without one.
 */
export function returnedUsersRowsQuery(tables: Tables, ids: readonly string[]): Sql {
  return {
    sql: `SELECT id, toUnixTimestamp64Milli(min(first_seen_at)), toUnixTimestamp64Milli(max(last_seen_at)), max(version),
  toUInt64OrZero(other_id)
FROM ${tables.entities}
WHERE kind = 'user' AND id IN {ids:Array(String)}
GROUP BY id, other_id`,
    params: { ids },
  };
}

/**
 * Returns SQL for when users were seen, by events and by submissions without any: `id`, `group_id`, `seen_ms` in milliseconds, and the
 * `version` of the submission in microseconds.
 *
 * @param condition of `user_id` and `group_id`
 */
export function sightings(tables: Tables, condition: string): string {
  return `
  SELECT user_id AS id, group_id, toUnixTimestamp64Milli(timestamp) AS seen_ms, toUnixTimestamp64Micro(received_at) AS version
  FROM ${tables.events}
  WHERE ${condition}
  UNION ALL
  SELECT user_id AS id, group_id, toInt64(intDiv(version, 1000)) AS seen_ms, toInt64(version) AS version
  FROM ${tables.userSightings}
  WHERE ${condition}`;
}

/**
 * Returns the query for when those of `ids` that were deleted have been seen since: identifier, first and last time in
 * milliseconds, 0 where nothing is stored yet.
 */
export function timesSinceDeletionQuery(tables: Tables, ids: readonly string[]): Sql {
  return {
    sql: `SELECT deletions.id, minIf(seen_ms, seen_ms != 0), maxIf(seen_ms, seen_ms != 0)
FROM (${lastDeletions(tables)}) AS deletions
GLOBAL LEFT JOIN (${sightings(tables, 'user_id IN {ids:Array(String)}')}
) AS sightings ON sightings.id = deletions.id AND sightings.version > deletions.deleted_version
GROUP BY deletions.id`,
    params: { ids },
  };
}

/**
 * Returns the query for when users who were deleted have been seen together with organizations since: user,
 * organization, first and last time in milliseconds. There is no row while no such event or sighting is stored.
 */
export function timesTogetherSinceDeletionQuery(
  tables: Tables,
  users: readonly string[],
  organizations: readonly string[],
): Sql {
  return {
    sql: `SELECT seen.id, group_id, min(seen_ms), max(seen_ms)
FROM (${sightings(tables, 'user_id IN {ids:Array(String)} AND group_id IN {organizations:Array(String)}')}
) AS seen
GLOBAL INNER JOIN (${lastDeletions(tables)}) AS deletions ON deletions.id = seen.id AND seen.version > deletions.deleted_version
GROUP BY seen.id, group_id`,
    params: { ids: users, organizations },
  };
}
