import { samplesOf, sum, valuesOf } from './service-metrics.ts';

/** What waits in Kafka. */
export interface LagState {
  readonly messages: number;
  readonly seconds: number;
  /** Until Kafka may delete the first message that is not stored; `null`: none waits, or age deletes nothing. */
  readonly headroomSeconds: number | null;
}

/** What the writers say of their own work, since they started. */
export interface WritersState {
  readonly batchFailures: number;
  readonly deadLetters: number;
  readonly deadLetterAlarm: boolean;
  readonly haltedPartitions: number;
  readonly lastStoredAt: string | null;
}

export interface ClickHouseState {
  readonly disks: readonly { readonly name: string; readonly freeBytes: number; readonly totalBytes: number }[];
  /** The partition that is nearest to its limit of parts. */
  readonly fullestPartition: { readonly table: string; readonly parts: number; readonly partsLimit: number } | null;
  readonly pendingMutations: number;
}

export interface ErasuresState {
  readonly pendingUsers: number;
  readonly oldestSeconds: number;
  readonly deadlineSeconds: number;
}

/** Every writer measures the lag of all. */
export function lagOf(writers: readonly string[]): LagState | null {
  const text = writers.find((one) => valuesOf(one, 'sluice_writer_lag_messages').length > 0);
  if (text === undefined) return null;
  const headrooms = valuesOf(text, 'sluice_writer_retention_headroom_seconds');
  return {
    messages: sum(valuesOf(text, 'sluice_writer_lag_messages')),
    seconds: Math.max(...valuesOf(text, 'sluice_writer_lag_seconds')),
    headroomSeconds: headrooms.length > 0 ? Math.min(...headrooms) : null,
  };
}

/** Each writer knows its own batches and partitions alone: without one of them the state is not known. */
export function writersOf(writers: readonly string[]): WritersState {
  const valuesOfAll = (metric: string) => writers.flatMap((text) => valuesOf(text, metric));
  const lastStored = valuesOfAll('sluice_writer_last_stored_timestamp_seconds');
  return {
    batchFailures: sum(valuesOfAll('sluice_writer_batch_failures_total')),
    deadLetters: sum(valuesOfAll('sluice_writer_dead_letters_total')),
    deadLetterAlarm: valuesOfAll('sluice_writer_dead_letter_alarm').includes(1),
    haltedPartitions: sum(valuesOfAll('sluice_writer_halted_partitions')),
    lastStoredAt: lastStored.length > 0 ? new Date(Math.max(...lastStored) * 1_000).toISOString() : null,
  };
}

/** Every writer reads the same of ClickHouse. */
export function clickHouseOf(writers: readonly string[]): ClickHouseState | null {
  const text = writers.find((one) => valuesOf(one, 'sluice_clickhouse_disk_bytes').length > 0);
  if (text === undefined) return null;
  const byLabel = (metric: string, label: string) =>
    new Map(samplesOf(text, metric).map(({ labels, value }) => [labels[label] ?? '', value]));
  const free = byLabel('sluice_clickhouse_disk_free_bytes', 'disk');
  const disks = [...byLabel('sluice_clickhouse_disk_bytes', 'disk')].map(([name, totalBytes]) => ({
    ...{ name, totalBytes },
    freeBytes: free.get(name) ?? 0,
  }));
  const limits = byLabel('sluice_clickhouse_partition_parts_limit', 'table');
  const partitions = [...byLabel('sluice_clickhouse_partition_parts', 'table')]
    .map(([table, parts]) => ({ table, parts, partsLimit: limits.get(table) ?? 0 }))
    .sort((a, b) => fullnessOf(b) - fullnessOf(a));
  return {
    disks,
    fullestPartition: partitions[0] ?? null,
    pendingMutations: sum(valuesOf(text, 'sluice_clickhouse_pending_mutations')),
  };
}

/** With a limit of 0 ClickHouse refuses nothing. */
function fullnessOf({ parts, partsLimit }: { readonly parts: number; readonly partsLimit: number }): number {
  return partsLimit > 0 ? parts / partsLimit : 0;
}

/** Every writer reads the same erasures. */
export function erasuresOf(writers: readonly string[]): ErasuresState | null {
  const text = writers.find((one) => valuesOf(one, 'sluice_erasure_pending_users').length > 0);
  if (text === undefined) return null;
  const [pendingUsers = 0] = valuesOf(text, 'sluice_erasure_pending_users');
  const [oldestSeconds = 0] = valuesOf(text, 'sluice_erasure_oldest_seconds');
  const [deadlineSeconds = 0] = valuesOf(text, 'sluice_erasure_deadline_seconds');
  return { pendingUsers, oldestSeconds, deadlineSeconds };
}

/** Every writer reads the age of the same backup. */
export function backupOf(writers: readonly string[]): { readonly ageSeconds: number } | null {
  const ages = writers.flatMap((text) => valuesOf(text, 'sluice_backup_age_seconds'));
  return ages.length > 0 ? { ageSeconds: Math.max(...ages) } : null;
}
