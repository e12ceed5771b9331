import type { SeenEntity } from './entity-record.ts';

/** The fields that a list can be ordered by. */
export const ENTITY_ORDER_FIELDS = ['id', 'firstSeenAt', 'lastSeenAt'] as const;

export type Direction = 'ASC' | 'DESC';

export interface EntityOrder {
  readonly field: (typeof ENTITY_ORDER_FIELDS)[number];
  readonly direction: Direction;
}

/** An order by a time, then by identifier. */
export interface SeenOrder extends EntityOrder {
  readonly field: Exclude<EntityOrder['field'], 'id'>;
}

/** Where a user or an organization stands in an order; `seenMs` matters in a {@link SeenOrder} alone. */
export interface EntitySortKey {
  readonly id: string;
  readonly seenMs: number;
}

/** Returns where a user or an organization with these times stands. */
export function seenSortKeyOf({ id, firstSeenMs, lastSeenMs }: SeenEntity, { field }: SeenOrder): EntitySortKey {
  return { id, seenMs: field === 'firstSeenAt' ? firstSeenMs : lastSeenMs };
}

/** Compares sort keys: below 0 if the first one comes first. */
export function compareSortKeys(one: EntitySortKey, other: EntitySortKey, { direction }: SeenOrder): number {
  const compared = one.seenMs - other.seenMs || Buffer.compare(Buffer.from(one.id), Buffer.from(other.id));
  return direction === 'ASC' ? compared : -compared;
}
