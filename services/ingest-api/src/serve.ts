import { listening } from '@sluice/shared/http/server';
import { createKafka } from '@sluice/shared/kafka/client';
import { createKeyRing, missingKeys } from '@sluice/shared/keys/key-ring';
import { runService } from '@sluice/shared/lifecycle';
import type { Logger } from '@sluice/shared/log';
import type { Registry } from 'prom-client';
import { buildApp } from './app.ts';
import type { IngestConfig } from './config.ts';
import { BrokerClock } from './kafka/broker-clock.ts';
import { createLoadMeter } from './kafka/load-meter.ts';
import { RowPublisher } from './kafka/row-publisher.ts';
import { createIngestMetrics } from './metrics.ts';
import { createReadiness } from './readiness.ts';
import { createVersionClock } from './rows/version-clock.ts';

export type Readiness = () => Promise<readonly string[]>;

/**
 * Serves requests in this process until it is told to stop.
 *
 * @param together makes the readiness of the service from that of this process
 */
export function serve(
  config: IngestConfig,
  logger: Logger,
  registry: Registry,
  together: (readiness: Readiness) => Readiness = (readiness) => readiness,
): void {
  const kafka = createKafka(config, 'sluice-ingest-api', logger);
  const keys = createKeyRing(config.API_KEYS_FILE, logger);
  const metrics = createIngestMetrics(registry);
  const publisher = new RowPublisher({ kafka, config, metrics, logger, load: createLoadMeter() });
  const clock = new BrokerClock({ kafka, config, metrics, logger });
  const readiness = createReadiness(kafka, config, publisher, clock);
  const app = buildApp(config, {
    keys,
    publisher,
    clock,
    logger,
    registry,
    metrics,
    versions: createVersionClock(),
    now: Date.now,
    readiness: together(async () => [...missingKeys(keys), ...(await readiness())]),
  });
  runService({
    logger,
    components: [keys, publisher, clock, listening(app, config.HOST, config.PORT)],
    shutdownTimeoutMs: config.SHUTDOWN_TIMEOUT_MS,
    exitOnStdinEnd: config.EXIT_ON_STDIN_END,
  });
}
