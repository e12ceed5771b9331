import type { KafkaReplicas } from '@sluice/shared/kafka/topic-durability';
import { declareReadGauge, type Sample } from '@sluice/shared/service/read-gauge';
import type { PartitionLag } from '@sluice/storage/kafka/lag';
import type { Registry } from 'prom-client';
import type { AuditState, PendingErasures, ServerComparison, ServerState } from './clickhouse-readings.ts';
import type { WriterConfig } from './config.ts';

/**
 * For how long a round of erasures may rewrite parts before it counts as late, in milliseconds. At 200 MB/s, six hours
 * rewrite four terabytes.
 */
const ERASURE_ROUND_MS = 6 * 3_600_000;

/** What is measured when the metrics are read. Each resolves to `undefined` while its source cannot be reached. */
export interface WriterReadings {
  readonly lag: () => Promise<readonly PartitionLag[] | undefined>;
  readonly replicas: () => KafkaReplicas | undefined;
  readonly server: () => Promise<ServerState | undefined>;
  readonly erasures: () => Promise<PendingErasures | undefined>;
  /** In seconds. */
  readonly backupAge: () => Promise<number | undefined>;
  readonly audits: () => Promise<AuditState | undefined>;
  readonly comparisons: () => Promise<readonly ServerComparison[] | undefined>;
}

/**
 * Declares the metrics that are read from Kafka and ClickHouse. Every writer has them for all, so they are there as long
 * as one writer runs; each is absent while what it is read from cannot be reached.
 */
export function declareMeasuredMetrics(
  registry: Registry,
  { lag, replicas, server, erasures, backupAge, audits, comparisons }: WriterReadings,
  config: Pick<WriterConfig, 'ERASURE_DELAY_MS' | 'ERASURE_GATHER_MS' | 'ERASURE_INTERVAL_MS'>,
): void {
  declareLag(registry, lag);
  declareReplicas(registry, replicas);
  declareServer(registry, server);
  declareErasures(registry, erasures, erasureDeadlineSeconds(config));
  declareReadGauge(
    registry,
    {
      name: 'sluice_backup_age_seconds',
      help: 'Time since the last complete backup began; without any, since the database was created.',
    },
    async () => samplesOf(await backupAge()),
  );
  declareAudits(registry, audits);
  declareComparisons(registry, comparisons);
}

function declareLag(registry: Registry, read: WriterReadings['lag']): void {
  const declare = (name: string, help: string, value: (lag: PartitionLag) => number | undefined) =>
    declareReadGauge(registry, { name, help, labelNames: ['topic', 'partition'] }, async () =>
      ((await read()) ?? []).flatMap((lag) => {
        const { topic, partition } = lag;
        return samplesOf(value(lag), { topic, partition });
      }),
    );
  declare(
    'sluice_writer_lag_messages',
    'Messages of a partition that the writers have not committed, whichever writer owns it.',
    ({ messages }) => messages,
  );
  declare(
    'sluice_writer_lag_seconds',
    'Age of the oldest message of a partition that the writers have not committed; 0 when there is none.',
    ({ seconds }) => seconds,
  );
  declare(
    'sluice_writer_retention_headroom_seconds',
    'Time until Kafka may delete the oldest message that is not committed, by retention.ms; absent without one.',
    ({ headroomSeconds }) => headroomSeconds,
  );
}

function declareReplicas(registry: Registry, read: WriterReadings['replicas']): void {
  declareReadGauge(registry, { name: 'sluice_kafka_brokers', help: 'Brokers of Kafka that run.' }, () =>
    samplesOf(read()?.brokers),
  );
  declareReadGauge(
    registry,
    {
      name: 'sluice_topic_replicas',
      help: 'Replicas of the partition of a topic that has the fewest.',
      labelNames: ['topic'],
    },
    () => (read()?.topics ?? []).map(({ topic, replicas }) => ({ labels: { topic }, value: replicas })),
  );
  declareReadGauge(
    registry,
    {
      name: 'sluice_topic_min_insync_replicas',
      help: 'How many replicas of a topic must have a row before its 202 (min.insync.replicas).',
      labelNames: ['topic'],
    },
    () => (read()?.topics ?? []).flatMap(({ topic, inSyncMin }) => samplesOf(inSyncMin, { topic })),
  );
}

function declareServer(registry: Registry, read: WriterReadings['server']): void {
  const declare = <Label extends 'disk' | 'table', Item extends Readonly<Record<Label, string>>>(
    label: Label,
    itemsOf: (state: ServerState) => readonly Item[],
  ) => {
    return (name: string, help: string, value: (item: Item) => number) =>
      declareReadGauge(registry, { name, help, labelNames: [label] }, async () => {
        const state = await read();
        return (state ? itemsOf(state) : []).map((item) => ({
          labels: { [label]: item[label] },
          value: value(item),
        }));
      });
  };
  const declareOfDisk = declare('disk', ({ disks }) => disks);
  const declareOfTable = declare('table', ({ tables }) => tables);
  declareOfDisk(
    'sluice_clickhouse_disk_free_bytes',
    'Free space of a disk, as ClickHouse sees it.',
    (one) => one.freeBytes,
  );
  declareOfDisk('sluice_clickhouse_disk_bytes', 'Size of a disk, as ClickHouse sees it.', (one) => one.totalBytes);
  declareOfTable(
    'sluice_clickhouse_partition_parts',
    'Active parts of the partition of a table that has the most.',
    (one) => one.parts,
  );
  declareOfTable(
    'sluice_clickhouse_partition_parts_limit',
    'With how many parts of a partition ClickHouse refuses inserts (parts_to_throw_insert).',
    (one) => one.partsLimit,
  );
  declareOfTable(
    'sluice_clickhouse_pending_mutations',
    'Mutations of a table that are not done.',
    (one) => one.pendingMutations,
  );
}

function declareErasures(registry: Registry, read: WriterReadings['erasures'], deadlineSeconds: number): void {
  const declare = (name: string, help: string, value: (erasures: PendingErasures) => number) =>
    declareReadGauge(registry, { name, help }, async () => {
      const erasures = await read();
      return samplesOf(erasures && value(erasures));
    });
  declare(
    'sluice_erasure_pending_users',
    'Users who are deleted and not erased yet. Queries do not show them.',
    ({ users }) => users,
  );
  declare(
    'sluice_erasure_oldest_seconds',
    'How long the first of these users has waited to be erased; 0 when there is none.',
    ({ oldestSeconds }) => oldestSeconds,
  );
  declareReadGauge(
    registry,
    {
      name: 'sluice_erasure_deadline_seconds',
      help: 'After how long an erasure is late: ERASURE_GATHER_MS, ERASURE_DELAY_MS and the time of a round.',
    },
    () => [{ value: deadlineSeconds }],
  );
}

function declareAudits(registry: Registry, read: WriterReadings['audits']): void {
  const declare = (name: string, help: string, value: (audits: AuditState) => number | undefined) =>
    declareReadGauge(registry, { name, help }, async () => {
      const audits = await read();
      return samplesOf(audits && value(audits));
    });
  const inHours = 'in the newest audit of each hour of the last 30 days; absent 90 days after the last audit.';
  declare(
    'sluice_audit_missing_events',
    `Accepted rows that are neither stored nor accounted for otherwise, ${inHours}`,
    ({ differences }) => differences?.missing,
  );
  declare(
    'sluice_audit_invented_events',
    `Stored rows that the log does not have, ${inHours}`,
    ({ differences }) => differences?.invented,
  );
  declare(
    'sluice_audit_duplicate_events',
    `Visible rows beyond the first one of their key, ${inHours}`,
    ({ differences }) => differences?.duplicates,
  );
  declare(
    'sluice_audit_balanced_through_timestamp_seconds',
    'Up to this time of receipt, audits of everything have found all rows accounted for; absent 90 days after the last one.',
    ({ balancedSeconds }) => balancedSeconds,
  );
}

function declareComparisons(registry: Registry, read: WriterReadings['comparisons']): void {
  const declare = (name: string, help: string, value: (comparison: ServerComparison) => number) =>
    declareReadGauge(registry, { name, help, labelNames: ['other'] }, async () =>
      ((await read()) ?? []).map((comparison) => ({ labels: { other: comparison.other }, value: value(comparison) })),
    );
  declare(
    'sluice_servers_compared_timestamp_seconds',
    'When this ClickHouse server was last compared with another one; absent 90 days later.',
    ({ comparedSeconds }) => comparedSeconds,
  );
  declare(
    'sluice_servers_differ',
    '1 when the last comparison with another ClickHouse server has found a difference, else 0.',
    ({ differs }) => (differs ? 1 : 0),
  );
}

/**
 * A user may just miss a round, and then waits until the next one (`ERASURE_GATHER_MS` after it), which begins within
 * `ERASURE_INTERVAL_MS`.
 */
function erasureDeadlineSeconds(config: Parameters<typeof declareMeasuredMetrics>[2]): number {
  const { ERASURE_DELAY_MS, ERASURE_GATHER_MS, ERASURE_INTERVAL_MS } = config;
  return (ERASURE_GATHER_MS + ERASURE_DELAY_MS + ERASURE_INTERVAL_MS + ERASURE_ROUND_MS) / 1_000;
}

function samplesOf(value: number | undefined, labels: Sample['labels'] = {}): Sample[] {
  return value === undefined ? [] : [{ labels, value }];
}
