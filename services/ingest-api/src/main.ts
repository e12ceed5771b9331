import { loadConfigOrExit } from '@sluice/shared/config';
import { listening } from '@sluice/shared/http/server';
import { createKafka } from '@sluice/shared/kafka/client';
import { createKeyRing, missingKeys } from '@sluice/shared/keys/key-ring';
import { runService } from '@sluice/shared/lifecycle';
import { createLogger } from '@sluice/shared/log';
import { Registry } from 'prom-client';
import { buildApp } from './app.ts';
import { configSchema } from './config.ts';
import { BrokerClock } from './kafka/broker-clock.ts';
import { RowPublisher } from './kafka/row-publisher.ts';
import { createIngestMetrics } from './metrics.ts';
import { createReadiness } from './readiness.ts';
import { createVersionClock } from './rows/version-clock.ts';

const config = loadConfigOrExit(configSchema, process.env);
const logger = createLogger('ingest-api', config.LOG_LEVEL);
const kafka = createKafka(config, 'sluice-ingest-api', logger);
const keys = createKeyRing(config.API_KEYS_FILE, logger);
const registry = new Registry();
const metrics = createIngestMetrics(registry);
const publisher = new RowPublisher({ kafka, config, metrics, logger });
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
  readiness: async () => [...missingKeys(keys), ...(await readiness())],
});

runService({
  logger,
  components: [keys, publisher, clock, listening(app, config.HOST, config.PORT)],
  shutdownTimeoutMs: config.SHUTDOWN_TIMEOUT_MS,
  exitOnStdinEnd: config.EXIT_ON_STDIN_END,
});
