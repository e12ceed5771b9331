import { Refused } from '@sluice/shared/config/command-line';
import { topicNames, withAdmin } from '@sluice/shared/kafka/topics';
import { compareOffsets, inspectPartitions } from '@sluice/storage/kafka/inspect-partitions';
import type { PartitionStart } from '@sluice/storage/kafka/stopped-writers';
import type { LogGap } from '@sluice/storage/protocol/log-gap';
import { nameOf, type Position, type TopicPartition } from '@sluice/storage/protocol/position';
import type { Admin, Kafka } from 'kafkajs';
import type { BackupConfig } from './config.ts';
import type { Manifest } from './manifest.ts';

/** A partition whose log does not continue the backup. */
export interface Gap extends TopicPartition {
  readonly gap: LogGap;
  /** The oldest offset that Kafka has: there the writers go on. */
  readonly low: bigint;
}

/** What Kafka has of the time since a backup. */
export interface LogCheck {
  /** Messages that the writers will read again, or for the first time. */
  readonly messages: bigint;
  readonly gaps: readonly Gap[];
  /** Where the writers go on, in the topics that exist. */
  readonly starts: readonly PartitionStart[];
  /** Partitions of which nothing was stored before the backup, and that go on at their beginning. */
  readonly fresh: readonly TopicPartition[];
  /** How many partitions of topics were added since the backup, and have messages. Writers do not store these yet. */
  readonly added: number;
  /** How many messages they have. */
  readonly addedMessages: bigint;
}

/** Nothing of the partition was stored. The offset counts, whatever is committed. */
const BEGINNING: Position = { nextOffset: 0n, last: undefined };

const NO_LOG = { low: 0n, high: 0n };

/**
 * Compares Kafka's logs with the positions of a backup.
 *
 * @param groupId whose commits count as well; undefined for a backup of another group
 * @throws {Refused} when the backup is of other topics or another number of partitions than the environment names, or when a
 * partition cannot be read
 * @throws kafkajs's errors
 */
export async function checkLogs(
  kafka: Kafka,
  config: BackupConfig,
  manifest: Manifest,
  groupId: string | undefined,
): Promise<LogCheck> {
  requireSameNames(config, manifest);
  return await withAdmin(kafka, async (admin) => {
    const existing = new Set(await admin.listTopics());
    const positions = new Map<string, Position>(manifest.positions.map((position) => [nameOf(position), position]));
    const partitions = manifest.topics.flatMap(({ topic, partitions: count }) =>
      Array.from({ length: count }, (_, partition) => ({ topic, partition })),
    );
    const fresh = partitions.filter((partition) => !positions.has(nameOf(partition)));
    for (const partition of fresh) positions.set(nameOf(partition), BEGINNING);
    const readable = Object.fromEntries(
      manifest.topics
        .filter(({ topic }) => existing.has(topic))
        .map(({ topic, partitions: count }) => [topic, Array.from({ length: count }, (_, partition) => partition)]),
    );
    const inspected = await inspectPartitions(admin, groupId, readable, positions);
    const bounds = await readBounds(admin, Object.keys(readable));
    const gaps: Gap[] = [];
    const starts: PartitionStart[] = [];
    let messages = 0n;
    for (const partition of partitions) {
      const name = nameOf(partition);
      const exists = existing.has(partition.topic);
      const { low, high } = bounds.get(name) ?? NO_LOG;
      const inspection = exists
        ? inspected.find((found) => nameOf(found) === name)?.inspection
        : compareOffsets({ name, bounds: NO_LOG, committed: -1n, position: positions.get(name) });
      if (!inspection) throw new Refused(`Kafka cannot read ${name} at this moment: it has no leader. Try again.`);
      if (inspection.kind === 'gap') gaps.push({ ...partition, gap: inspection.gap, low });
      const offset = inspection.kind === 'gap' ? low : inspection.position.nextOffset;
      if (exists) starts.push({ ...partition, offset });
      messages += high - offset;
    }
    const known = new Set(partitions.map(nameOf));
    const added = [...bounds].filter(([name, { low, high }]) => !known.has(name) && high > low);
    const addedMessages = added.reduce((sum, [, { low, high }]) => sum + high - low, 0n);
    return { messages, gaps, fresh, starts, added: added.length, addedMessages };
  });
}

function requireSameNames(config: BackupConfig, { topics }: Manifest): void {
  const own = Object.values(topicNames(config));
  const others = topics.map(({ topic }) => topic).filter((topic) => !own.includes(topic));
  if (others.length > 0) {
    throw new Refused(
      `The backup is of the topics ${others.join(', ')}, and KAFKA_TOPIC_PREFIX is "${config.KAFKA_TOPIC_PREFIX}".`,
    );
  }
  const [different] = topics.filter(({ partitions }) => partitions !== config.KAFKA_PARTITIONS);
  if (different) {
    throw new Refused(
      `The backup is of ${different.partitions} partitions, and KAFKA_PARTITIONS is ${config.KAFKA_PARTITIONS}.`,
    );
  }
}

async function readBounds(
  admin: Admin,
  topics: readonly string[],
): Promise<ReadonlyMap<string, { readonly low: bigint; readonly high: bigint }>> {
  const logs = await Promise.all(topics.map(async (topic) => ({ topic, logs: await admin.fetchTopicOffsets(topic) })));
  return new Map(
    logs.flatMap(({ topic, logs: ofTopic }) =>
      ofTopic.map(({ partition, low, high }) => [
        nameOf({ topic, partition }),
        { low: BigInt(low), high: BigInt(high) },
      ]),
    ),
  );
}
