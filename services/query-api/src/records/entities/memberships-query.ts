import type { Sql } from '../../store/sql.ts';
import type { Tables } from '../../store/tables.ts';
import type { EntityKind } from './entity-kinds.ts';

// The memberships of a user are its organizations, those of an organization its users.

/** As the column `kind` holds the memberships of each kind. */
const KINDS = { user: 'membership', organization: 'member' } as const satisfies Record<EntityKind, string>;

/** Returns the query for the first `count` identifiers after `after` of the memberships of an entity. */
export function nextMembershipsQuery(tables: Tables, kind: EntityKind, id: string, after: string, count: number): Sql {
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
export function membershipsQuery(tables: Tables, kind: EntityKind, id: string, otherIds: readonly string[]): Sql {
  return {
    sql: `SELECT other_id, toUnixTimestamp64Milli(min(first_seen_at)), toUnixTimestamp64Milli(max(last_seen_at)), max(version)
FROM ${tables.entities}
WHERE kind = {kind:String} AND id = {id:String} AND other_id IN {other_ids:Array(String)}
GROUP BY other_id
ORDER BY other_id`,
    params: { kind: KINDS[kind], id, other_ids: otherIds },
  };
}
