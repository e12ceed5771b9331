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
  readonly storedMessages: number;
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

/** Every writer measures the lag of all of its server. Of several servers, each figure is that of the worst. */
export function lagOf(writers: readonly string[]): LagState | null {
  const found = ofEachServer(writers, 'sluice_writer_lag_messages');
  if (found.length === 0) return null;
  const headrooms = found.flatMap((text) => valuesOf(text, 'sluice_writer_retention_headroom_seconds'));
  return {
    messages: Math.max(...found.map((text) => sum(valuesOf(text, 'sluice_writer_lag_messages')))),
    seconds: Math.max(...found.flatMap((text) => valuesOf(text, 'sluice_writer_lag_seconds'))),
    headroomSeconds: headrooms.length > 0 ? Math.min(...headrooms) : null,
  };
}

/** Each writer knows its own batches and partitions alone: without one of them the state is not known. */
export function writersOf(writers: readonly string[]): WritersState {
  const valuesOfAll = (metric: string) => writers.flatMap((text) => valuesOf(text, metric));
  const lastStored = valuesOfAll('sluice_writer_last_stored_timestamp_seconds');
  return {
    storedMessages: sum(valuesOfAll('sluice_writer_stored_messages_total')),
    batchFailures: sum(valuesOfAll('sluice_writer_batch_failures_total')),
    deadLetters: sum(valuesOfAll('sluice_writer_dead_letters_total')),
    deadLetterAlarm: valuesOfAll('sluice_writer_dead_letter_alarm').includes(1),
    haltedPartitions: sum(valuesOfAll('sluice_writer_halted_partitions')),
    lastStoredAt: lastStored.length > 0 ? new Date(Math.max(...lastStored) * 1_000).toISOString() : null,
  };
}

/** Every writer reads the same of the ClickHouse of its server. */
export function clickHouseOf(writers: readonly string[]): ClickHouseState | null {
  const found = ofEachServer(writers, 'sluice_clickhouse_disk_bytes');
  if (found.length === 0) return null;
  const byLabel = (text: string, metric: string, label: string) =>
    new Map(samplesOf(text, metric).map(({ labels, value }) => [labels[label] ?? '', value]));
  const disks = found.flatMap((text) => {
    const [server, free] = [serverOf(text), byLabel(text, 'sluice_clickhouse_disk_free_bytes', 'disk')];
    return [...byLabel(text, 'sluice_clickhouse_disk_bytes', 'disk')].map(([disk, totalBytes]) => ({
      name: server === '' ? disk : `${server}/${disk}`,
      freeBytes: free.get(disk) ?? 0,
      totalBytes,
    }));
  });
  const partitions = found.flatMap((text) => {
    const limits = byLabel(text, 'sluice_clickhouse_partition_parts_limit', 'table');
    const parts = byLabel(text, 'sluice_clickhouse_partition_parts', 'table');
    return [...parts].map(([table, count]) => ({ table, parts: count, partsLimit: limits.get(table) ?? 0 }));
  });
  return {
    disks,
    fullestPartition: partitions.sort((a, b) => fullnessOf(b) - fullnessOf(a))[0] ?? null,
    pendingMutations: sum(found.flatMap((text) => valuesOf(text, 'sluice_clickhouse_pending_mutations'))),
  };
}

/** With a limit of 0 ClickHouse refuses nothing. */
function fullnessOf({ parts, partsLimit }: { readonly parts: number; readonly partsLimit: number }): number {
  return partsLimit > 0 ? parts / partsLimit : 0;
}

/** Every writer reads the same erasures of its server. Of several servers, those of the one whose first has waited longest. */
export function erasuresOf(writers: readonly string[]): ErasuresState | null {
  const states = ofEachServer(writers, 'sluice_erasure_pending_users').map((text) => {
    const [pendingUsers = 0] = valuesOf(text, 'sluice_erasure_pending_users');
    const [oldestSeconds = 0] = valuesOf(text, 'sluice_erasure_oldest_seconds');
    const [deadlineSeconds = 0] = valuesOf(text, 'sluice_erasure_deadline_seconds');
    return { pendingUsers, oldestSeconds, deadlineSeconds };
  });
  return states.sort((a, b) => b.oldestSeconds - a.oldestSeconds)[0] ?? null;
}

/** Every writer reads the age of the same backup of its server. Of several servers, the newest backup counts. */
export function backupOf(writers: readonly string[]): { readonly ageSeconds: number } | null {
  const ages = ofEachServer(writers, 'sluice_backup_age_seconds').flatMap((text) =>
    valuesOf(text, 'sluice_backup_age_seconds'),
  );
  return ages.length > 0 ? { ageSeconds: Math.min(...ages) } : null;
}

/** Returns the metrics of a writer of each ClickHouse server that has a metric, those of the first one. */
function ofEachServer(writers: readonly string[], metric: string): string[] {
  const found = writers.filter((text) => samplesOf(text, metric).length > 0);
  return [...Map.groupBy(found, serverOf).values()].flatMap(([first]) => first ?? []);
}

/** The server that a writer stores into, which all of its metrics name; empty without a file of servers. */
function serverOf(text: string): string {
  return /[{,]server="([^"]*)"/.exec(text)?.[1] ?? '';
}
