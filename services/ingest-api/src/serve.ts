import { connectionHint, withHint } from '@sluice/shared/base/connection-hints';
import type { Logger } from '@sluice/shared/base/log';
import { listening } from '@sluice/shared/http/server';
import { createKafka, recentHint } from '@sluice/shared/kafka/client';
import { TopicDurability } from '@sluice/shared/kafka/topic-durability';
import { topicNames, withAdmin } from '@sluice/shared/kafka/topics';
import { type KeyRing, missingKeys } from '@sluice/shared/keys/key-ring';
import { createKeyRing } from '@sluice/shared/keys/measured-key-ring';
import { runService } from '@sluice/shared/service/lifecycle';
import { Probe } from '@sluice/shared/service/probe';
import type { Kafka } from 'kafkajs';
import type { Registry } from 'prom-client';
import { buildApp } from './app.ts';
import type { IngestConfig } from './config.ts';
import { BrokerClock } from './kafka/broker-clock.ts';
import { RowPublisher } from './kafka/row-publisher.ts';
import { KAFKA_UNREACHABLE } from './kafka/topic-watch.ts';
import { createIngestMetrics } from './metrics.ts';
import { VersionClock } from './routes/version-clock.ts';

export type Readiness = () => Promise<readonly string[]>;

export interface IngestOptions {
  readonly logger: Logger;
  readonly registry: Registry;
  /** Default: those of `API_KEYS_FILE`. */
  readonly keys?: KeyRing;
  /** Makes the readiness of the service from that of this process. */
  readonly together?: (readiness: Readiness) => Readiness;
}

/** Builds ingest-api: its HTTP server, and the components that the server needs, in the order in which they start. */
export function createIngest(
  config: IngestConfig,
  {
    logger,
    registry,
    keys = createKeyRing(config.API_KEYS_FILE, logger, registry),
    together = (own) => own,
  }: IngestOptions,
) {
  const kafka = createKafka(config, 'sluice-ingest-api', logger);
  const metrics = createIngestMetrics(registry);
  const publisher = new RowPublisher({ kafka, config, metrics, logger });
  const clock = new BrokerClock({ kafka, config, metrics, logger });
  const durability = new TopicDurability(kafka, Object.values(topicNames(config)), logger);
  const ofKafka = createReadiness(kafka, config, publisher, clock);
  const readiness = together(async () => [...missingKeys(keys), ...(await ofKafka())]);
  const app = buildApp(config, {
    keys,
    publisher,
    clock,
    logger,
    registry,
    metrics,
    versions: new VersionClock(() => clock.nowMs()),
    now: () => clock.nowMs(),
    readiness,
    warnings: () => durability.warnings,
  });
  return { app, kafka, readiness, components: [keys, publisher, clock, durability] as const };
}

/** Serves requests in this process until it is told to stop, by a signal or by the function that it returns. */
export function serve(config: IngestConfig, options: IngestOptions): (reason: string) => void {
  const { app, components } = createIngest(config, options);
  const service = runService({
    logger: options.logger,
    components: [...components, listening(app, config.HOST, config.PORT)],
    shutdownTimeoutMs: config.SHUTDOWN_TIMEOUT_MS,
    exitOnStdinEnd: config.EXIT_ON_STDIN_END,
  });
  return (reason) => service.stop(reason);
}

/** How long Kafka may take to respond to a health check, in milliseconds. */
const PROBE_TIMEOUT_MS = 2_000;

/**
 * Returns what keeps ingest-api from accepting submissions, each as a short phrase. A topic is good enough when one of
 * its partitions has a leader: most requests can be accepted, and another instance could not do better.
 */
function createReadiness(
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
