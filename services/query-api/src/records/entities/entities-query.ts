import { countsSql, DECIDING, WINNER_ACCEPTED } from '@sluice/shared/clickhouse/property-versions';
import { lastDeletion, lastDeletionOf, type Sql, type Tables } from '../../store/store.ts';
import type { EntityCondition } from '../filters/entity-condition.ts';
import type { EntityKind } from './entity-kinds.ts';

// What is known about some users or organizations. Each query is small: joins and sub-selects would cost more CPU to
// plan than these rows cost to read.

/**
 * Returns the query for those of `ids` that were ever mentioned, ordered by identifier: when each was first and last
 * seen, in milliseconds, and the version of the last change of it, in microseconds.
 */
export function identitiesQuery(tables: Tables, kind: EntityKind, ids: readonly string[]): Sql {
  return {
    sql: `SELECT id, toUnixTimestamp64Milli(min(first_seen_at)), toUnixTimestamp64Milli(max(last_seen_at)), max(version)
FROM ${tables.entities}
WHERE kind = {kind:String} AND id IN {ids:Array(String)}
GROUP BY id
ORDER BY id`,
    params: { kind, ids },
  };
}

/** Short, however long the name of a property is. */
const KEY = 'toString(sipHash64(property))';

/** What a query returns of each property: its JSON, or a key by which {@link propertiesByKeyQuery} finds it. */
export type PropertyValues = 'value' | 'key';

/**
 * Returns the query for the properties of `ids`, ordered by name: identifier, name, JSON or key, version, and for each
 * condition whether this property matches. A property of a user counts if its version is above that of the deletion.
 */
export function propertiesQuery(
  tables: Tables,
  kind: EntityKind,
  ids: readonly string[],
  conditions: readonly EntityCondition[],
  values: PropertyValues,
): Sql {
  return {
    sql: `SELECT id, property, ${values === 'key' ? KEY : 'value'}, version, [${conditions.map(({ matches }) => matches).join(', ')}]
FROM (${currentProperties(tables, 'id IN {ids:Array(String)}', kind === 'user' && lastDeletionOf(tables, 'id'))})
ORDER BY id, property`,
    params: Object.assign({}, ...conditions.map(({ params }) => params), { kind, ids }),
  };
}

/**
 * Returns the query for some properties of one entity, ordered by name: name, JSON and version. Those of a user count if no
 * deletion is stored by now that hides them: a client that reads slowly takes them one piece after the other.
 */
export function propertiesByKeyQuery(tables: Tables, kind: EntityKind, id: string, keys: readonly string[]): Sql {
  return {
    sql: `SELECT property, value, version
FROM (${currentProperties(tables, `id = {id:String} AND ${KEY} IN {keys:Array(String)}`, kind === 'user' && lastDeletion(tables))})
ORDER BY property`,
    params: { kind, id, keys },
  };
}

/**
 * SQL for what sets each property, of the entities that meet a condition: `id`, `property`, `value`, and as `version` when
 * the change was accepted.
 *
 * @param deleted SQL for the version of the last deletion of the user `id`, 0 without one. Without it, nobody counts as deleted
 */
export function currentProperties(tables: Tables, condition: string, deleted: string | false = false): string {
  return `
  SELECT id, property, winner.2.value AS value, ${WINNER_ACCEPTED} AS version
  FROM (
    SELECT id, property, ${DECIDING} AS winner
    FROM ${tables.entityProperties}
    WHERE kind = {kind:String} AND ${condition}${deleted ? ` AND ${countsSql(deleted)}` : ''}
    GROUP BY id, property
    HAVING winner.2.operation = 'set'
  )`;
}
