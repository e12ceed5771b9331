import type { PartitionRange } from '@sluice/shared/servers/partition-range';
import { isInRange } from '@sluice/shared/servers/partition-range';
import kafkajs, { type Admin } from 'kafkajs';

/** Which of the two topics. */
export type TopicRole = 'events' | 'entities';

export type Topics = Readonly<Record<TopicRole, string>>;

/** The log of a partition, as it was when an audit began. */
export interface PartitionLog {
  readonly role: TopicRole;
  readonly topic: string;
  readonly partition: number;
  readonly low: bigint;
  readonly high: bigint;
  /** When Kafka took its first record, in milliseconds since 1970; `undefined`: it has none. */
  readonly firstMs: number | undefined;
  /** From when on it has every record that Kafka ever took; 0: it was never cut. */
  readonly wholeFromMs: number;
}

/**
 * Reads where the logs begin and end.
 *
 * @param range the partitions of the server
 * @throws kafkajs's errors, and an error while a partition has no leader
 */
export async function readLogs(
  admin: Admin,
  topics: Topics,
  range: PartitionRange | undefined,
  nowMs: number,
): Promise<readonly PartitionLog[]> {
  const logs: PartitionLog[] = [];
  for (const role of ['events', 'entities'] as const) {
    const topic = topics[role];
    const { partitions } = (await admin.fetchTopicMetadata({ topics: [topic] })).topics[0] ?? { partitions: [] };
    const keptFromMs = nowMs - (await keptMs(admin, topic));
    const offsets = await admin.fetchTopicOffsets(topic);
    for (const { partitionId: partition } of partitions.toSorted((one, other) => one.partitionId - other.partitionId)) {
      if (!isInRange(range, partition)) continue;
      const found = offsets.find((one) => one.partition === partition);
      if (!found) throw new Error(`Kafka does not say where ${topic}/${partition} ends: it has no leader`);
      const [low, high] = [BigInt(found.low), BigInt(found.high)];
      const first = low < high ? await admin.fetchRecord({ topic, partition, offset: found.low }) : null;
      const firstMs = first ? Number(first.timestamp) : undefined;
      const wholeFromMs = low === 0n ? 0 : Math.min(firstMs ?? nowMs, keptFromMs);
      logs.push({ role, topic, partition, low, high, firstMs, wholeFromMs });
    }
  }
  return logs;
}

/** For how long Kafka keeps every record of a topic, as far as its configuration says; 0: it does not. */
async function keptMs(admin: Admin, topic: string): Promise<number> {
  const configNames = ['retention.ms', 'retention.bytes', 'cleanup.policy'];
  const resources = [{ type: kafkajs.ConfigResourceTypes.TOPIC, name: topic, configNames }];
  // It takes the right DescribeConfigs.
  const response = await admin.describeConfigs({ resources, includeSynonyms: false }).catch(() => undefined);
  const entries = response?.resources[0]?.configEntries ?? [];
  const entryOf = (name: string) => entries.find(({ configName }) => configName === name)?.configValue;
  const isByAge = entryOf('cleanup.policy') === 'delete' && entryOf('retention.bytes') === '-1';
  return isByAge ? Math.max(0, Number(entryOf('retention.ms') ?? 0)) : 0;
}

/** Returns the offsets from which on the records of a time are, by `TOPIC/PARTITION`. @throws kafkajs's errors */
export async function offsetsAt(admin: Admin, topics: Topics, ms: number): Promise<ReadonlyMap<string, bigint>> {
  const found = new Map<string, bigint>();
  for (const topic of Object.values(topics)) {
    for (const { partition, offset } of await admin.fetchTopicOffsetsByTimestamp(topic, ms)) {
      found.set(`${topic}/${partition}`, BigInt(offset));
    }
  }
  return found;
}

/** Returns where the partitions end now. @throws kafkajs's errors */
export async function endsOf(admin: Admin, topic: string): Promise<ReadonlyMap<number, bigint>> {
  const offsets = await admin.fetchTopicOffsets(topic);
  return new Map(offsets.map(({ partition, high }) => [partition, BigInt(high)]));
}
