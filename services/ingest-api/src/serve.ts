import { listening } from '@sluice/shared/http/server';
import { createKafka } from '@sluice/shared/kafka/client';
import { TopicDurability } from '@sluice/shared/kafka/topic-durability';
import { topicNames } from '@sluice/shared/kafka/topics';
import { type KeyRing, missingKeys } from '@sluice/shared/keys/key-ring';
import { createKeyRing } from '@sluice/shared/keys/measured-key-ring';
import { runService } from '@sluice/shared/lifecycle';
import type { Logger } from '@sluice/shared/log';
import type { Registry } from 'prom-client';
import { buildApp } from './app.ts';
import type { IngestConfig } from './config.ts';
import { BrokerClock } from './kafka/broker-clock.ts';
import { RowPublisher } from './kafka/row-publisher.ts';
import { createIngestMetrics } from './metrics.ts';
import { createReadiness } from './readiness.ts';
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
    versions: new VersionClock(),
    now: Date.now,
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
