import { topicNames, withAdmin } from '@sluice/shared/kafka/topics';
import { createProbe } from '@sluice/shared/probe';
import type { Kafka } from 'kafkajs';
import type { IngestConfig } from './config.ts';
import type { RowPublisher } from './row-publisher.ts';

/** How long Kafka may take to answer a health check, in milliseconds. */
const PROBE_TIMEOUT_MS = 2_000;

/** What keeps ingest-api from accepting: Kafka has to answer, and every partition of its topics to have a leader. */
export function createReadiness(
  kafka: Kafka,
  config: IngestConfig,
  publisher: Pick<RowPublisher, 'connected'>,
): () => Promise<string[]> {
  const probe = createProbe('Kafka cannot be reached', PROBE_TIMEOUT_MS, async () => {
    const topics = Object.values(topicNames(config));
    const metadata = await withAdmin(kafka, (admin) => admin.fetchTopicMetadata({ topics }));
    const partitions = metadata.topics.flatMap((topic) => topic.partitions);
    if (partitions.some(({ leader }) => leader < 0)) throw new Error('a partition has no leader');
  });
  return async () => {
    if (!publisher.connected) return ['Kafka cannot be reached'];
    const missing = await probe();
    return missing === undefined ? [] : [missing];
  };
}
