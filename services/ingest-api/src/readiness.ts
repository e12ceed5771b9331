import { connectionHint, withHint } from '@sluice/shared/connection-hints';
import { recentHint } from '@sluice/shared/kafka/client';
import { topicNames, withAdmin } from '@sluice/shared/kafka/topics';
import { Probe } from '@sluice/shared/probe';
import type { Kafka } from 'kafkajs';
import type { IngestConfig } from './config.ts';
import type { BrokerClock } from './kafka/broker-clock.ts';
import type { RowPublisher } from './kafka/row-publisher.ts';
import { KAFKA_UNREACHABLE } from './kafka/topic-watch.ts';

/** How long Kafka may take to respond to a health check, in milliseconds. */
const PROBE_TIMEOUT_MS = 2_000;

/**
 * Returns what keeps ingest-api from accepting submissions, each as a short phrase. A topic is good enough when one of
 * its partitions has a leader: most requests can be accepted, and another instance could not do better.
 */
export function createReadiness(
  kafka: Kafka,
  config: IngestConfig,
  publisher: Pick<RowPublisher, 'missing'>,
  clock: Pick<BrokerClock, 'problem'>,
): () => Promise<readonly string[]> {
  const requireLeaders = async () => {
    const topics = Object.values(topicNames(config));
    const metadata = await withAdmin(kafka, (admin) => admin.fetchTopicMetadata({ topics }));
    for (const { name, partitions } of metadata.topics) {
      if (partitions.every(({ leader }) => leader < 0)) throw new Error(`no partition of ${name} has a leader`);
    }
  };
  const whyUnreachable = (error?: unknown) => withHint(KAFKA_UNREACHABLE, connectionHint(error) ?? recentHint(kafka));
  const probe = new Probe(whyUnreachable, PROBE_TIMEOUT_MS, requireLeaders);
  return async () => {
    const missing = publisher.missing();
    if (missing.length > 0) {
      return missing.map((phrase) => (phrase === KAFKA_UNREACHABLE ? whyUnreachable() : phrase));
    }
    return [await probe.check(), clock.problem()].filter((phrase) => phrase !== undefined);
  };
}
