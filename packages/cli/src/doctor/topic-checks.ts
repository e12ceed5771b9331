import type { KafkaConfig } from '@sluice/shared/config';
import { type KafkaReplicas, shortcomings } from '@sluice/shared/kafka/topic-durability';
import { readNewTopic } from '@sluice/shared/kafka/topics';
import type { Admin, PartitionMetadata } from 'kafkajs';
import { type Finding, note, ok, wrong } from './check.ts';

/** What Kafka's default `max.message.bytes` is, for which ingest-api makes its batches. */
const MESSAGE_BYTES_MIN = 1_048_588;

/** For how long topics should keep rows that are not stored yet, in milliseconds: ClickHouse may be away over a night. */
const RETENTION_MS_MIN = 86_400_000;

/** A topic as its metadata and its settings have it; the settings are undefined without the right `DescribeConfigs`. */
export interface Topic {
  readonly name: string;
  readonly partitions: readonly PartitionMetadata[];
  settings?: ReadonlyMap<string, string>;
}

/** Whether the brokers stamp the records of topics. */
export function checkTimestamps(topics: readonly Topic[]): Finding {
  const others = topics.filter(({ settings }) => settings?.get('message.timestamp.type') !== 'LogAppendTime');
  if (others.length === 0) return ok('LogAppendTime');
  return wrong(
    others.map(({ name, settings }) => `${name} has ${settings?.get('message.timestamp.type')}`).join(', '),
    'Set message.timestamp.type=LogAppendTime of these topics (kafka-configs.sh --alter).',
  );
}

/** Whether topics of rows take batches of ingest-api. */
export function checkSizes(topics: readonly Topic[]): Finding {
  const sizes = topics.map(({ name, settings }) => ({
    name,
    bytes: numberOf(settings, 'max.message.bytes'),
  }));
  const small = sizes.filter(({ bytes }) => bytes !== undefined && bytes < MESSAGE_BYTES_MIN);
  if (small.length === 0)
    return ok(sizes.map(({ name, bytes }) => `${name} takes ${bytes ?? 'any number of'} bytes`).join(', '));
  return wrong(
    small.map(({ name, bytes }) => `${name} has max.message.bytes=${bytes}`).join(', '),
    `Set max.message.bytes to ${MESSAGE_BYTES_MIN} or more, then restart ingest-api.`,
  );
}

/** Whether topics of rows keep them for long enough. */
export function checkRetention(topics: readonly Topic[]): Finding {
  const problems = topics.flatMap(({ name, settings }) => {
    const policy = settings?.get('cleanup.policy') ?? 'delete';
    const ms = numberOf(settings, 'retention.ms') ?? -1;
    return [
      ...(policy === 'delete' ? [] : [`${name} has cleanup.policy=${policy}`]),
      ...(ms >= 0 && ms < RETENTION_MS_MIN ? [`${name} keeps rows for ${(ms / 3_600_000).toFixed(1)} hours`] : []),
      ...(settings?.get('unclean.leader.election.enable') === 'true'
        ? [`${name} has unclean.leader.election.enable=true, which loses accepted rows`]
        : []),
    ];
  });
  if (problems.length > 0)
    return wrong(
      problems.join('; '),
      'Set cleanup.policy=delete, retention.ms to a day or more (a week is usual), and no unclean elections.',
    );
  const limited = topics.filter(({ settings }) => (numberOf(settings, 'retention.bytes') ?? -1) >= 0);
  if (limited.length > 0)
    return note(
      `retention.bytes of ${limited.map(({ name }) => name).join(', ')} may delete rows before their time`,
      'Watch how much of it a long outage of ClickHouse would need.',
    );
  const kept = topics.map(({ name, settings }) => {
    const ms = numberOf(settings, 'retention.ms') ?? -1;
    return `${name} ${ms < 0 ? 'for ever' : `${Math.round(ms / 3_600_000)} hours`}`;
  });
  return ok(kept.join(', '));
}

/** Says what a `202` would rest on with topics of rows that are created now. @param absent the topics that are missing */
export async function foreseeReplicas(admin: Admin, config: KafkaConfig, absent: readonly string[]): Promise<Finding> {
  const { brokers } = await admin.describeCluster();
  const { replicas, inSyncMin } = await readNewTopic(admin, config);
  if (replicas === undefined)
    return note(
      `what ${absent.join(', ')} would have cannot be seen without the right DescribeConfigs on the cluster`,
      'Set KAFKA_REPLICATION_FACTOR=3 where there are three brokers, and run doctor again when a service has created them.',
    );
  const foreseen = { brokers: brokers.length, topics: absent.map((topic) => ({ topic, replicas, inSyncMin })) };
  const problems = shortcomings(foreseen, 'would have');
  if (problems.length === 0) return ok(`new topics would have: ${describeReplicas(foreseen)}`);
  return wrong(
    problems.join('; '),
    'Set KAFKA_REPLICATION_FACTOR=3 for all services before their first start: docs/operate/durability.md#kafka.',
  );
}

export function describeReplicas({ brokers, topics }: KafkaReplicas): string {
  const found = topics.map(({ topic, replicas, inSyncMin }) => `${topic} ${replicas}, of which ${inSyncMin} in sync`);
  return `${found.join('; ')}${brokers === 1 ? ' on the only broker: a 202 rests on one machine' : ''}`;
}

function numberOf(settings: ReadonlyMap<string, string> | undefined, name: string): number | undefined {
  const value = settings?.get(name);
  return value === undefined ? undefined : Number(value);
}
