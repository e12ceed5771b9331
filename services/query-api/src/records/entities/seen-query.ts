import type { Sql } from '../../store/sql.ts';
import type { Tables } from '../../store/tables.ts';
import type { EntityKind } from './entity-kinds.ts';
import type { EntitySortKey, SeenOrder } from './entity-order.ts';

const COLUMNS = {
  firstSeenAt: 'first_seen_at',
  lastSeenAt: 'last_seen_at',
} as const satisfies Record<SeenOrder['field'], string>;

/**
 * Returns the query for the next `count` rows of an order: identifier and time in milliseconds. ClickHouse reads them in
 * the order of a projection of `entities`. Rows of one user that are not merged yet have different times: at most one of
 * them is that of the user.
 */
export function nextSeenQuery(
  tables: Tables,
  kind: EntityKind,
  { field, direction }: SeenOrder,
  after: EntitySortKey | undefined,
  count: number,
): Sql {
  const column = COLUMNS[field];
  const compare = direction === 'ASC' ? '>' : '<';
  const afterTime = 'fromUnixTimestamp64Milli({after_seen:Int64})';
  // The first comparison adds nothing, but it finds the place in the projection.
  const isAfter = `${column} ${compare}= ${afterTime}
  AND (${column} ${compare} ${afterTime} OR id ${compare} {after:String})`;
  return {
    sql: `SELECT id, toUnixTimestamp64Milli(${column})
FROM ${tables.entities}
WHERE kind = {kind:String}${after ? ` AND ${isAfter}` : ''}
ORDER BY ${column} ${direction}, id ${direction}
LIMIT {count:UInt64}`,
    params: { kind, count, ...(after && { after: after.id, after_seen: after.seenMs }) },
  };
}
