import { type Sql, tables, where } from '../clickhouse/sql.ts';
import { entityPropertyCondition } from '../filters/filter-sql.ts';
import type { PropertyFilter } from '../filters/property-filter.ts';
import type { EntityKind } from './entity-kinds.ts';

/** Which users or organizations to read. */
export interface EntitiesSelection {
  /** This one alone. */
  readonly id?: string;
  /** Those after this identifier. */
  readonly after?: string | undefined;
  readonly properties: readonly PropertyFilter[];
  readonly rowsMax: number;
}

/**
 * Returns the query for the users or organizations that exist, ordered by identifier: when each was first and last
 * seen, in milliseconds, and the version of the last change of it, in microseconds.
 */
export function entitiesQuery(kind: EntityKind, { id, after, properties, rowsMax }: EntitiesSelection): Sql {
  const conditions: Sql[] = [{ sql: 'kind = {kind:String}', params: { kind } }];
  if (id !== undefined) conditions.push({ sql: 'id = {id:String}', params: { id } });
  if (after !== undefined) conditions.push({ sql: 'id > {after:String}', params: { after } });
  if (kind === 'user') conditions.push({ sql: `id NOT IN (${deletedUsers(id, after)})`, params: {} });
  const propertiesWith = (condition: string) => currentProperties(kind, condition, '1');
  conditions.push(...properties.map((filter, index) => entityPropertyCondition(filter, index, propertiesWith)));
  const { sql, params } = where(conditions);
  return {
    sql: `SELECT id, toUnixTimestamp64Milli(min(first_seen_at)), toUnixTimestamp64Milli(max(last_seen_at)), max(version)
FROM ${tables.entities}
${sql}
GROUP BY id
ORDER BY id
LIMIT {rows_max:UInt64}`,
    params: { ...params, rows_max: rowsMax },
  };
}

/** Returns the query for the current properties of `ids`: identifier, name and JSON, ordered by name. */
export function propertiesQuery(kind: EntityKind, ids: readonly string[]): Sql {
  return {
    sql: `SELECT id, property, value
FROM (${currentProperties(kind, 'id IN {ids:Array(String)}', 'user_id IN {ids:Array(String)}')})
ORDER BY id, property`,
    params: { kind, ids },
  };
}

/**
 * Returns the query for those of `ids` that were ever deleted, and when they have been seen since: identifier, first
 * and last time in milliseconds, 0 where nothing is stored yet.
 */
export function timesSinceDeletionQuery(ids: readonly string[]): Sql {
  const deletions = deletionsOf('user_id IN {ids:Array(String)}');
  return {
    sql: `SELECT deletions.id, minIf(seen_ms, seen_ms != 0), maxIf(seen_ms, seen_ms != 0)
FROM (${deletions}) AS deletions
LEFT JOIN (
  SELECT user_id AS id, toUnixTimestamp64Milli(timestamp) AS seen_ms, toUnixTimestamp64Micro(received_at) AS version
  FROM ${tables.events}
  WHERE user_id IN (SELECT id FROM (${deletions}))
  UNION ALL
  SELECT user_id AS id, toInt64(intDiv(version, 1000)) AS seen_ms, toInt64(version) AS version
  FROM ${tables.userSightings}
  WHERE user_id IN (SELECT id FROM (${deletions}))
) AS sightings ON sightings.id = deletions.id AND sightings.version > deletions.deleted_version
GROUP BY deletions.id`,
    params: { ids },
  };
}

/** SQL for deleted users that nothing was accepted about since; restricted to `id`, or to those after `after`. */
function deletedUsers(id: string | undefined, after: string | undefined): string {
  const requested = id !== undefined ? 'user_id = {id:String}' : after !== undefined ? 'user_id > {after:String}' : '1';
  return `
  SELECT deletions.id
  FROM (${deletionsOf(requested)}) AS deletions
  LEFT JOIN (
    SELECT id, max(version) AS seen_version
    FROM ${tables.entities}
    WHERE kind = 'user' AND id IN (SELECT user_id FROM ${tables.userDeletions} WHERE ${requested})
    GROUP BY id
  ) AS entities ON entities.id = deletions.id
  WHERE seen_version <= deleted_version`;
}

/** SQL for the last deletion of each user: nothing of the user up to its version counts. */
function deletionsOf(condition: string): string {
  return `
  SELECT user_id AS id, toInt64(max(version)) AS deleted_version
  FROM ${tables.userDeletions}
  WHERE ${condition}
  GROUP BY user_id`;
}

/**
 * SQL for the properties as they are now: the newest register of a property wins. The property exists if that register
 * set it, after any deletion of the user.
 */
function currentProperties(kind: EntityKind, condition: string, deletionCondition: string): string {
  const registers = `
  SELECT id, property, max(register) AS winner
  FROM ${tables.entityProperties}
  WHERE kind = {kind:String} AND ${condition}
  GROUP BY id, property
  HAVING tupleElement(winner, 'operation') = 'set'`;
  const columns = `id, property, tupleElement(winner, 'value') AS value`;
  // Organizations are not deleted; one may have the identifier of a deleted user.
  if (kind === 'organization') return `SELECT ${columns} FROM (${registers})`;
  return `
  SELECT ${columns}
  FROM (${registers}) AS registers
  LEFT JOIN (${deletionsOf(deletionCondition)}) AS deletions USING (id)
  WHERE tupleElement(winner, 'version') > deleted_version`;
}
