import { withAdmin } from '@sluice/shared/kafka/topics';
import type { Kafka } from 'kafkajs';

/** Deletes all records of a partition, as retention does. */
export async function deleteRecords(kafka: Kafka, topic: string, partition: number): Promise<void> {
  await withAdmin(kafka, async (admin) => {
    const log = (await admin.fetchTopicOffsets(topic)).find((found) => found.partition === partition);
    await admin.deleteTopicRecords({ topic, partitions: [{ partition, offset: log?.high ?? '' }] });
  });
}
