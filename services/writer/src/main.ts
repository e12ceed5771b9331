import { randomUUID } from 'node:crypto';
import { createClickHouse } from '@sluice/shared/clickhouse/client';
import { migrate } from '@sluice/shared/clickhouse/migrate';
import { loadConfigOrExit } from '@sluice/shared/config';
import { refuseOtherMethods } from '@sluice/shared/http/other-methods';
import { createHttpServer, listening } from '@sluice/shared/http/server';
import { createKafka } from '@sluice/shared/kafka/client';
import { topicNames } from '@sluice/shared/kafka/topics';
import { runService } from '@sluice/shared/lifecycle';
import { createLogger } from '@sluice/shared/log';
import { withProcessMetrics } from '@sluice/shared/process-metrics';
import { Registry } from 'prom-client';
import { configSchema } from './config.ts';
import { ERASURE_TIMEOUT_MS } from './erasure/erasure.ts';
import { LagReader } from './kafka/lag.ts';
import { createWriterMetrics } from './metrics.ts';
import { createWriter } from './writer.ts';

const config = loadConfigOrExit(configSchema, process.env);
const logger = createLogger('writer', config.LOG_LEVEL);
const registry = withProcessMetrics(new Registry());
const client = createClickHouse(config, {
  application: 'sluice-writer',
  requestTimeoutMs: config.STATEMENT_TIMEOUT_MS + 5_000,
  connectionsMax: 4,
});
const kafka = createKafka(config, 'sluice-writer', logger);
const lag = new LagReader({
  kafka,
  groupId: config.KAFKA_GROUP_ID,
  topics: Object.values(topicNames(config)),
});
const writer = createWriter(config, {
  kafka,
  client,
  migrate: () => migrate(config, logger),
  erasureClient: createClickHouse(config, {
    application: 'sluice-writer-erasure',
    requestTimeoutMs: ERASURE_TIMEOUT_MS + 5_000,
    // One for deleted users, and one for expired events.
    connectionsMax: 2,
  }),
  logger,
  metrics: createWriterMetrics(registry, () => lag.read()),
  writerId: randomUUID(),
  fail: (error) => service.fail(error),
});
const app = createHttpServer({
  ...{ logger, registry, readiness: () => writer.missing() },
  allowedHosts: config.ALLOWED_HOSTS,
});
refuseOtherMethods(app);

const service = runService({
  logger,
  components: [lag, listening(app, config.HOST, config.PORT), writer],
  shutdownTimeoutMs: config.SHUTDOWN_TIMEOUT_MS,
  exitOnStdinEnd: config.EXIT_ON_STDIN_END,
});
