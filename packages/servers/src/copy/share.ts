import { entityHashSql, eventHashSql } from '@sluice/shared/rows/row-hashes';
import type { PartitionRange } from '@sluice/shared/servers/partition-range';

/** The part of a server's rows that another one gets, which has fewer of Kafka's partitions. */
export interface Share {
  /** The partitions of the server that is filled. */
  readonly range: PartitionRange;
  /** Over how many partitions rows are spread today. */
  readonly partitionCount: number;
  /** How much that is of the rows that are divided, from 0 to 1. */
  readonly fraction: number;
}

/**
 * What the partition of a row follows from, for each table whose rows are divided; the others are copied whole. It is the
 * partition through which a repeat comes today: the number of partitions may have grown since the row was stored, and an event
 * must meet its repeats. A topic may have more partitions than rows are spread over, and dead letters may come from these.
 */
const PARTITION_SQL: ReadonlyMap<string, string> = new Map([
  ['events', eventHashSql('uuid')],
  ['entity_properties', entityHashSql('workspace_id', 'kind', 'id')],
  ['user_sightings', entityHashSql('workspace_id', "'user'", 'user_id')],
  ['identity_links', entityHashSql('workspace_id', "'visitor'", 'anonymous_id')],
  ['dead_letters', 'partition'],
]);

/** Whether the rows of a table are divided between servers with different partitions. */
export function isDivided(table: string): boolean {
  return PARTITION_SQL.has(table);
}

/** Returns the condition that a row of a table belongs to a share, with its {@link shareParameters}. */
export function shareCondition(table: string, share: Share | undefined): string {
  const partition = PARTITION_SQL.get(table);
  if (!share || partition === undefined) return 'true';
  return `${partition} % {partition_count:UInt32} BETWEEN {first_partition:UInt32} AND {last_partition:UInt32}`;
}

export function shareParameters(share: Share | undefined): Readonly<Record<string, number>> {
  if (!share) return {};
  const { range, partitionCount } = share;
  return { partition_count: partitionCount, first_partition: range.first, last_partition: range.last };
}
