import { type Sql, tables, where } from '../clickhouse/sql.ts';
import { FilterParameters, holdsAt, type PropertyFilter, placesOf, positive } from '../filters/property-filter.ts';

export type EntityKind = 'user' | 'organization';

export interface EntitiesQuestion {
  /** The one that is asked for. */
  readonly id?: string;
  /** The identifier after which the page begins. */
  readonly after?: string | undefined;
  readonly properties: readonly PropertyFilter[];
  readonly rowsMax: number;
}

/**
 * The users or organizations that exist, by identifier: when each was first and last seen, in milliseconds, and the
 * last time that anything was said about it, in microseconds.
 */
export function entitiesQuery(kind: EntityKind, { id, after, properties, rowsMax }: EntitiesQuestion): Sql {
  const conditions: Sql[] = [{ sql: 'kind = {kind:String}', params: { kind } }];
  if (id !== undefined) conditions.push({ sql: 'id = {id:String}', params: { id } });
  if (after !== undefined) conditions.push({ sql: 'id > {after:String}', params: { after } });
  if (kind === 'user') conditions.push({ sql: `id NOT IN (${deadUsers(id, after)})`, params: {} });
  conditions.push(...properties.map((filter, index) => hasProperty(kind, filter, index)));
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

/** The properties that `ids` have now: identifier, name and JSON text, in the order of the names. */
export function propertiesQuery(kind: EntityKind, ids: readonly string[]): Sql {
  return {
    sql: `SELECT id, property, value
FROM (${currentProperties(kind, 'id IN {ids:Array(String)}', 'user_id IN {ids:Array(String)}')})
ORDER BY id, property`,
    params: { kind, ids },
  };
}

/**
 * Those of `ids` that were deleted at some time, and when they have been seen since: identifier, first and last time in
 * milliseconds, 0 where nothing is stored yet.
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

/** Deleted users of whom nothing has been heard since: among all, or as far as the question is about them. */
function deadUsers(id: string | undefined, after: string | undefined): string {
  const asked = id !== undefined ? 'user_id = {id:String}' : after !== undefined ? 'user_id > {after:String}' : '1';
  return `
  SELECT deletions.id
  FROM (${deletionsOf(asked)}) AS deletions
  LEFT JOIN (
    SELECT id, max(version) AS seen_version
    FROM ${tables.entities}
    WHERE kind = 'user' AND id IN (SELECT user_id FROM ${tables.userDeletions} WHERE ${asked})
    GROUP BY id
  ) AS entities ON entities.id = deletions.id
  WHERE seen_version <= deleted_version`;
}

/** When users were last deleted: the version up to which nothing of them counts any more. */
function deletionsOf(condition: string): string {
  return `
  SELECT user_id AS id, toInt64(max(version)) AS deleted_version
  FROM ${tables.userDeletions}
  WHERE ${condition}
  GROUP BY user_id`;
}

/** The registers folded: the last change of a property wins, and counts if it set it, after any deletion. */
function currentProperties(kind: EntityKind, condition: string, deletionCondition: string): string {
  const registers = `
  SELECT id, property, max(register) AS winner
  FROM ${tables.entityProperties}
  WHERE kind = {kind:String} AND ${condition}
  GROUP BY id, property
  HAVING tupleElement(winner, 'operation') = 'set'`;
  const columns = `id, property, tupleElement(winner, 'value') AS value`;
  // Organizations are not deleted; one may have the identifier of a user who was.
  if (kind === 'organization') return `SELECT ${columns} FROM (${registers})`;
  return `
  SELECT ${columns}
  FROM (${registers}) AS registers
  LEFT JOIN (${deletionsOf(deletionCondition)}) AS deletions USING (id)
  WHERE tupleElement(winner, 'version') > deleted_version`;
}

/** The condition that a user or an organization matches a filter. */
function hasProperty(kind: EntityKind, asked: PropertyFilter, index: number): Sql {
  const { filter, negated } = positive(asked);
  const parameters = new FilterParameters(index);
  const parts = filter.name.split('.');
  // The first range of a place names the property; the others reach into its value.
  const places = Map.groupBy(placesOf(filter.name), ([property]) => property?.to ?? 0);
  const alternatives = [...places].map(([to, found]) => {
    const property = parameters.text(parts.slice(0, to).join('.'));
    const inside = found.map(([, ...rest]) => rest);
    return { property, sql: `(property = ${property} AND ${holdsAt('value', inside, filter, parameters)})` };
  });
  const names = alternatives.map(({ property }) => property).join(', ');
  return {
    sql: `id ${negated ? 'NOT IN' : 'IN'} (
    SELECT id
    FROM (${currentProperties(kind, `property IN (${names})`, '1')})
    WHERE ${alternatives.map(({ sql }) => sql).join('\n      OR ')}
  )`,
    params: parameters.params,
  };
}
