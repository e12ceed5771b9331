import { Refused } from '@sluice/shared/config/command-line';
import { withAdmin } from '@sluice/shared/kafka/topics';
import type { Kafka } from 'kafkajs';
import type { TopicPartition } from '../protocol/position.ts';

/** @throws {Refused} while the group of the writers has members; kafkajs's errors */
export async function requireStoppedWriters(kafka: Kafka, groupId: string): Promise<void> {
  const { groups } = await withAdmin(kafka, (admin) => admin.describeGroups([groupId]));
  const members = groups.flatMap((group) => group.members);
  if (members.length === 0) return;
  const hosts = [...new Set(members.map(({ clientHost }) => clientHost.replace(/^\//, '')))].join(', ');
  throw new Refused(
    `Stop the writers first: the group ${groupId} has ${members.length} (at ${hosts}). Kafka counts one that was killed ` +
      'until its session has timed out (KAFKA_SESSION_TIMEOUT_MS).',
  );
}

/** Where a partition goes on. */
export interface PartitionStart extends TopicPartition {
  readonly offset: bigint;
}

/**
 * Sets the committed offsets of the group back to where its writers go on. They would go on there anyway, but until they
 * run, the lag would seem to be nothing.
 *
 * @throws kafkajs's errors, also when the group has members
 */
export async function rewindGroup(kafka: Kafka, groupId: string, starts: readonly PartitionStart[]): Promise<void> {
  await withAdmin(kafka, async (admin) => {
    for (const [topic, ofTopic] of Map.groupBy(starts, (start) => start.topic)) {
      const partitions = ofTopic.map(({ partition, offset }) => ({ partition, offset: String(offset) }));
      await admin.setOffsets({ groupId, topic, partitions });
    }
  });
}
