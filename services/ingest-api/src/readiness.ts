import { topicNames, withAdmin } from '@sluice/shared/kafka/topics';
import { createProbe } from '@sluice/shared/probe';
import type { Kafka } from 'kafkajs';
import type { BrokerClock } from './broker-clock.ts';
import type { IngestConfig } from './config.ts';
import type { RowPublisher } from './row-publisher.ts';

/** How long Kafka may take to answer a health check, in milliseconds. */
const PROBE_TIMEOUT_MS = 2_000;

/**
 * What keeps ingest-api from accepting, each as a short phrase. A topic of which some partitions have a leader is good
 * enough: most requests can be accepted, and another instance could not do better.
 */
export function createReadiness(
  kafka: Kafka,
  config: IngestConfig,
  publisher: Pick<RowPublisher, 'missing'>,
  clock: Pick<BrokerClock, 'fault'>,
): () => Promise<string[]> {
  const probe = createProbe('Kafka cannot be reached', PROBE_TIMEOUT_MS, async () => {
    const topics = Object.values(topicNames(config));
    const metadata = await withAdmin(kafka, (admin) => admin.fetchTopicMetadata({ topics }));
    for (const { name, partitions } of metadata.topics) {
      if (partitions.every(({ leader }) => leader < 0)) throw new Error(`no partition of ${name} has a leader`);
    }
  });
  return async () => {
    const missing = publisher.missing();
    if (missing.length > 0) return missing;
    return [await probe(), clock.fault()].filter((phrase) => phrase !== undefined);
  };
}
