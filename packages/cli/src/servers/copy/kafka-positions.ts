import { topicNames, withAdmin } from '@sluice/shared/kafka/topics';
import { isInRange } from '@sluice/shared/servers/partition-range';
import type { StoredPosition } from '@sluice/writer/clickhouse/known-partitions';
import { inspectPartitions } from '@sluice/writer/kafka/inspect-partitions';
import { nameOf } from '@sluice/writer/protocol/position';
import type { Kafka } from 'kafkajs';
import type { PartitionStart } from '../../backup/log-check.ts';
import { Refused } from '../../backup/refused.ts';
import type { ConfiguredServer } from '../connected-server.ts';

/**
 * Returns why Kafka's logs do not continue these positions, a sentence for each such partition.
 *
 * @throws {Refused} when a partition cannot be read at the moment
 * @throws kafkajs's errors
 */
export async function readGaps(kafka: Kafka, positions: readonly StoredPosition[]): Promise<string[]> {
  const partitions: Record<string, number[]> = {};
  for (const { topic, partition } of positions) partitions[topic] = [...(partitions[topic] ?? []), partition];
  const known = new Map(positions.map((position) => [nameOf(position), position]));
  const inspected = await withAdmin(kafka, (admin) => inspectPartitions(admin, undefined, partitions, known));
  if (inspected.length < positions.length) {
    throw new Refused('Some partitions have no leader. Mend the brokers first.');
  }
  return inspected.flatMap(({ inspection }) => (inspection.kind === 'gap' ? [`${inspection.gap.detail}.`] : []));
}

/**
 * Returns where the writers of a server go on, for all of its partitions: they do at the lower one of the stored and the
 * committed offset, so each partition needs a new commit.
 *
 * @throws kafkajs's errors
 */
export async function readStarts(
  kafka: Kafka,
  { config, server }: ConfiguredServer,
  positions: readonly StoredPosition[],
): Promise<PartitionStart[]> {
  const topics = Object.values(topicNames(config));
  const stored = new Map(positions.map((position) => [nameOf(position), position.nextOffset]));
  const { topics: known } = await withAdmin(kafka, (admin) => admin.fetchTopicMetadata({ topics }));
  return known.flatMap(({ name: topic, partitions }) =>
    partitions
      .map(({ partitionId: partition }) => ({ topic, partition }))
      .filter(({ partition }) => isInRange(server.partitions, partition))
      .map((partition) => ({ ...partition, offset: stored.get(nameOf(partition)) ?? 0n })),
  );
}
