import { createClickHouse } from '@sluice/shared/clickhouse/client';
import { loadConfigOrExit } from '@sluice/shared/config';
import { listening } from '@sluice/shared/http/server';
import { FileKeyRing, type KeyRing, missingKeys } from '@sluice/shared/keys/key-ring';
import { type Component, runService } from '@sluice/shared/lifecycle';
import { createLogger } from '@sluice/shared/log';
import { withProcessMetrics } from '@sluice/shared/process-metrics';
import { Registry } from 'prom-client';
import { buildApp } from './app.ts';
import { HttpClickHouseReader } from './clickhouse/clickhouse-reader.ts';
import { querySettings } from './clickhouse/query-settings.ts';
import { createReadiness } from './clickhouse/readiness.ts';
import { SchemaComponent } from './clickhouse/schema.ts';
import { configSchema, connectionsOf } from './config.ts';

/** Without a keys file a request needs no key, and any key that it sends is wrong. */
const NO_KEYS: KeyRing = {
  name: 'API keys',
  start: async () => undefined,
  stop: async () => undefined,
  loaded: true,
  find: () => undefined,
};

/** Connections for urgent queries, which need no query slot. */
const SPARE_CONNECTIONS = 4;

/** Connections for health checks and migrations. */
const CLIENT_CONNECTIONS = 4;

const config = loadConfigOrExit(configSchema, process.env);
const logger = createLogger('query-api', config.LOG_LEVEL);
const clickHouse = createClickHouse(config, {
  application: 'sluice-query-api',
  requestTimeoutMs: config.QUERY_TIMEOUT_MS + 5_000,
  connectionsMax: CLIENT_CONNECTIONS,
  logger,
});
const reader = new HttpClickHouseReader(config, {
  connectionsMax: connectionsOf(config) + SPARE_CONNECTIONS,
  settings: querySettings(config),
  logger,
});
const connections: Component = {
  name: 'ClickHouse connections',
  start: async () => undefined,
  async stop() {
    reader.close();
    await clickHouse.close();
  },
};
const keys = config.API_KEYS_FILE === undefined ? NO_KEYS : new FileKeyRing(config.API_KEYS_FILE, logger);
const probe = createReadiness(clickHouse);
const app = buildApp(config, {
  reader,
  keys,
  logger,
  registry: withProcessMetrics(new Registry()),
  readiness: async () => [...missingKeys(keys), ...(await probe())],
});

runService({
  logger,
  components: [
    connections,
    new SchemaComponent(clickHouse, config, logger),
    keys,
    listening(app, config.HOST, config.PORT),
  ],
  shutdownTimeoutMs: config.SHUTDOWN_TIMEOUT_MS,
  exitOnStdinEnd: config.EXIT_ON_STDIN_END,
});
