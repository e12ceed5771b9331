import { type Sql, tables, where } from '../clickhouse/sql.ts';
import { type EntityCondition, entityCondition } from '../filters/entity-condition.ts';
import type { PropertyFilter } from '../filters/property-filter.ts';
import type { EntityKind } from './entity-kinds.ts';
import { type EntityScope, inScope } from './entity-scope.ts';

/** Which users or organizations of a scope to read. */
export interface EntitiesSelection {
  readonly scope: EntityScope;
  readonly properties: readonly PropertyFilter[];
  readonly rowsMax: number;
}

/**
 * Returns the query for the users or organizations that exist, ordered by identifier: when each was first and last
 * seen, in milliseconds, and the version of the last change of it, in microseconds. It reads no row outside the scope.
 */
export function entitiesQuery(kind: EntityKind, { scope, properties, rowsMax }: EntitiesSelection): Sql {
  const conditions: Sql[] = [{ sql: 'kind = {kind:String}', params: { kind } }, inScope(scope, 'id')];
  if (kind === 'user') conditions.push({ sql: `id NOT IN (${deletedUsers(scope)})`, params: {} });
  conditions.push(...properties.map(entityCondition).map((condition) => hasProperty(kind, scope, condition)));
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

/**
 * Returns the query for the current properties of `ids`: identifier, name and JSON, and for each condition whether this
 * property matches; ordered by name.
 */
export function propertiesQuery(kind: EntityKind, ids: readonly string[], conditions: readonly EntityCondition[]): Sql {
  return {
    sql: `SELECT id, property, value, [${conditions.map(({ matches }) => matches).join(', ')}]
FROM (${currentProperties(kind, { ids }, '1')})
ORDER BY id, property`,
    params: Object.assign({}, ...conditions.map(({ params }) => params), { kind, ids }),
  };
}

/**
 * Returns the query for those of `ids` that were ever deleted, and when they have been seen since: identifier, first
 * and last time in milliseconds, 0 where nothing is stored yet.
 */
export function timesSinceDeletionQuery(ids: readonly string[]): Sql {
  const deletions = deletionsOf({ ids });
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

/** The condition that an entity has, or has not, a current property that matches. */
function hasProperty(kind: EntityKind, scope: EntityScope, condition: EntityCondition): Sql {
  const { properties, matches, negated, params } = condition;
  return {
    sql: `id ${negated ? 'NOT IN' : 'IN'} (
    SELECT id
    FROM (${currentProperties(kind, scope, properties)})
    WHERE ${matches}
  )`,
    params,
  };
}

/** SQL for deleted users of a scope that nothing was accepted about since. */
function deletedUsers(scope: EntityScope): string {
  const { sql: requested } = inScope(scope, 'user_id');
  return `
  SELECT deletions.id
  FROM (${deletionsOf(scope)}) AS deletions
  LEFT JOIN (
    SELECT id, max(version) AS seen_version
    FROM ${tables.entities}
    WHERE kind = 'user' AND id IN (SELECT user_id FROM ${tables.userDeletions} WHERE ${requested})
    GROUP BY id
  ) AS entities ON entities.id = deletions.id
  WHERE seen_version <= deleted_version`;
}

/** SQL for the last deletion of each user of a scope: nothing of the user up to its version counts. */
function deletionsOf(scope: EntityScope): string {
  return `
  SELECT user_id AS id, toInt64(max(version)) AS deleted_version
  FROM ${tables.userDeletions}
  WHERE ${inScope(scope, 'user_id').sql}
  GROUP BY user_id`;
}

/**
 * SQL for the properties of a scope as they are now: the newest register of a property wins. The property exists if
 * that register set it, after any deletion of the user.
 */
function currentProperties(kind: EntityKind, scope: EntityScope, condition: string): string {
  const registers = `
  SELECT id, property, max(register) AS winner
  FROM ${tables.entityProperties}
  WHERE kind = {kind:String} AND ${inScope(scope, 'id').sql} AND ${condition}
  GROUP BY id, property
  HAVING tupleElement(winner, 'operation') = 'set'`;
  const columns = `id, property, tupleElement(winner, 'value') AS value`;
  // Organizations are not deleted; one may have the identifier of a deleted user.
  if (kind === 'organization') return `SELECT ${columns} FROM (${registers})`;
  return `
  SELECT ${columns}
  FROM (${registers}) AS registers
  LEFT JOIN (${deletionsOf(scope)}) AS deletions USING (id)
  WHERE tupleElement(winner, 'version') > deleted_version`;
}
