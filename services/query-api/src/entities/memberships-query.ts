import { type Sql, tables } from '../clickhouse/sql.ts';
import { DELETIONS } from './entities-query.ts';
import type { EntityKind } from './entity-kinds.ts';

// The memberships of a user are its organizations, those of an organization its users.

/** As the column `kind` holds the memberships of each kind. */
const KINDS = { user: 'membership', organization: 'member' } as const satisfies Record<EntityKind, string>;

/** Returns the query for the first `count` identifiers after `after` of the memberships of an entity. */
export function nextMembershipsQuery(kind: EntityKind, id: string, after: string, count: number): Sql {
  return {
    // DISTINCT ends with the last row that is needed; GROUP BY would read all memberships.
    sql: `SELECT DISTINCT other_id
FROM ${tables.entities}
WHERE kind = {kind:String} AND id = {id:String} AND other_id > {after:String}
ORDER BY other_id
LIMIT {count:UInt64}`,
    params: { kind: KINDS[kind], id, after, count },
  };
}

/**
 * Returns the query for some memberships of an entity, ordered by identifier: when the two were first and last seen
 * together, in milliseconds, and the version of the last submission that names both, in microseconds.
 */
export function membershipsQuery(kind: EntityKind, id: string, otherIds: readonly string[]): Sql {
  return {
    sql: `SELECT other_id, toUnixTimestamp64Milli(min(first_seen_at)), toUnixTimestamp64Milli(max(last_seen_at)), max(version)
FROM ${tables.entities}
WHERE kind = {kind:String} AND id = {id:String} AND other_id IN {other_ids:Array(String)}
GROUP BY other_id
ORDER BY other_id`,
    params: { kind: KINDS[kind], id, other_ids: otherIds },
  };
}

/**
 * Returns the query for when users who were deleted have been seen together with organizations since: user,
 * organization, first and last time in milliseconds. There is no row while no such event or sighting is stored.
 */
export function timesTogetherSinceDeletionQuery(users: readonly string[], organizations: readonly string[]): Sql {
  return {
    sql: `SELECT seen.user_id, group_id, min(seen_ms), max(seen_ms)
FROM (
  SELECT user_id, group_id, toUnixTimestamp64Milli(timestamp) AS seen_ms, toUnixTimestamp64Micro(received_at) AS version
  FROM ${tables.events}
  WHERE user_id IN {ids:Array(String)} AND group_id IN {organizations:Array(String)}
  UNION ALL
  SELECT user_id, group_id, toInt64(intDiv(version, 1000)) AS seen_ms, toInt64(version) AS version
  FROM ${tables.userSightings}
  WHERE user_id IN {ids:Array(String)} AND group_id IN {organizations:Array(String)}
) AS seen
INNER JOIN (${DELETIONS}) AS deletions ON deletions.id = seen.user_id AND seen.version > deletions.deleted_version
GROUP BY seen.user_id, group_id`,
    params: { ids: users, organizations },
  };
}
