import { createLogger } from '@sluice/shared/base/log';
import { createClickHouse } from '@sluice/shared/clickhouse/client';
import { loginOf } from '@sluice/shared/clickhouse/connection';
import { requireReplication, UnusableServer, watchForOneServer } from '@sluice/shared/clickhouse/one-server';
import { pinnedSettings, replicatedSettings } from '@sluice/shared/clickhouse/settings';
import { type ClickHouseConfig, isReplicated, isShared, orExit } from '@sluice/shared/config';
import { listening } from '@sluice/shared/http/server';
import { type KeyRing, missingKeys } from '@sluice/shared/keys/key-ring';
import { createKeyRing } from '@sluice/shared/keys/measured-key-ring';
import { distinctRanges, sameRange } from '@sluice/shared/servers/partition-range';
import { serverAt, serverDefaults } from '@sluice/shared/servers/server-config';
import { type Component, runService } from '@sluice/shared/service/lifecycle';
import { withProcessMetrics } from '@sluice/shared/service/process-metrics';
import { Registry } from 'prom-client';
import { buildApp } from './app.ts';
import {
  connectionsOf,
  loadQueryConfig,
  type QueryConfig,
  sqlConfigOf,
  webhooksConfigOf,
  webhooksConfigOn,
  webhooksServerOf,
} from './config.ts';
import type { Place } from './manage/manage.ts';
import {
  createReadiness,
  HttpClickHouseReader,
  querySettings,
  REQUEST_CONNECTIONS,
  SchemaComponent,
  type Source,
} from './store/store.ts';

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

/** Connections for deliveries, and for the check of links. Requests have their own. */
const STATE_CONNECTIONS = 8;

/** Connections to each server that has to have what is declared. */
const LEVELLING_CONNECTIONS = 2;

/** How long a statement about the state of webhooks may take, in milliseconds. */
const WEBHOOKS_TIMEOUT_MS = 10_000;

const { config, servers } = orExit(() => loadQueryConfig(process.env));
const logger = createLogger('query-api', config.LOG_LEVEL);
const registry = withProcessMetrics(new Registry());
const keys = config.API_KEYS_FILE === undefined ? NO_KEYS : createKeyRing(config.API_KEYS_FILE, logger, registry);

function connect(of: QueryConfig): HttpClickHouseReader {
  const connectionsMax = connectionsOf(config) + SPARE_CONNECTIONS;
  const sqlReader = connectSql(of);
  return new HttpClickHouseReader(of, { connectionsMax, settings: querySettings(config), logger, sqlReader });
}

/** Connects for statements of clients, each of which is a report; undefined where they have no account. */
function connectSql(of: QueryConfig): HttpClickHouseReader | undefined {
  const clickHouse = sqlConfigOf(of);
  return (
    clickHouse &&
    new HttpClickHouseReader(clickHouse, { connectionsMax: config.REPORT_CONNECTIONS_MAX, settings: {}, logger })
  );
}

/** Reads the file of servers. Their tables are created by their writers, and connections belong to the source. */
function readServers(path: string) {
  const source: Source = {
    path,
    defaults: serverDefaults(process.env),
    login: loginOf(config),
    connect({ url, database }) {
      const of = { ...config, CLICKHOUSE_URL: url, CLICKHOUSE_DATABASE: database };
      watchReplica(of);
      requireReplication(of).catch((error) => {
        // Where it does not answer, doctor says so.
        if (error instanceof UnusableServer) service.fail(error);
      });
      return connect(of);
    },
  };
  return { source, components: [], probe: async () => [] };
}

/** The addresses of replicas that are watched. */
const watched = new Set<string>();

/** Other servers of a file have names of their own in their databases, by which it shows that an address leads to another one. */
function watchReplica(of: QueryConfig): void {
  if (!isReplicated(of) || watched.has(of.CLICKHOUSE_URL)) return;
  watched.add(of.CLICKHOUSE_URL);
  watchForOneServer(of, (error) => service.fail(error));
}

function readOneServer() {
  const clickHouse = createClickHouse(config, {
    application: 'sluice-query-api',
    requestTimeoutMs: config.QUERY_TIMEOUT_MS + 5_000,
    connectionsMax: CLIENT_CONNECTIONS,
    logger,
  });
  const reader = connect(config);
  const connections: Component = {
    name: 'ClickHouse connections',
    start: async () => undefined,
    async stop() {
      reader.close();
      await clickHouse.close();
    },
  };
  const components = [connections, new SchemaComponent(clickHouse, config, logger)];
  return { source: { reader }, components, probe: createReadiness(clickHouse, config) };
}

/**
 * Connects for the state of webhooks, and for what is declared.
 *
 * @param server of which its range decides how many replicas there are. Default: the one at this address, else the first one
 */
function connectWebhooks(
  clickHouse: ClickHouseConfig,
  connectionsMax: number,
  server = serverAt(servers ?? [], clickHouse.CLICKHOUSE_URL) ?? servers?.[0],
) {
  const application = 'sluice-query-api-webhooks';
  const settings = isReplicated(config)
    ? {
        ...pinnedSettings,
        ...replicatedSettings(server ? sameRange(servers ?? [], server).length : 0, WEBHOOKS_TIMEOUT_MS),
      }
    : pinnedSettings;
  return createClickHouse(clickHouse, {
    ...{ application, requestTimeoutMs: WEBHOOKS_TIMEOUT_MS, connectionsMax, logger, settings },
  });
}

/** Undefined where the state of webhooks has no account. */
const ofWebhooks = webhooksConfigOf(config);
const webhooks = ofWebhooks && connectWebhooks(ofWebhooks, REQUEST_CONNECTIONS + STATE_CONNECTIONS);

/** The name of the replica that stores the state of webhooks. */
const webhooksReplica = isReplicated(config) ? webhooksServerOf({ config, servers })?.name : undefined;

/** Whether events may be on another server than the state of webhooks, and ClickHouse copies nothing there. */
const isApart =
  !(isReplicated(config) && distinctRanges(servers ?? []).length === 1) &&
  (servers !== undefined ||
    config.CLICKHOUSE_WEBHOOKS_URL !== undefined ||
    config.CLICKHOUSE_WEBHOOKS_DATABASE !== undefined);
if (
  webhooks &&
  servers &&
  servers.length > 1 &&
  !isReplicated(config) &&
  config.CLICKHOUSE_WEBHOOKS_URL === undefined
) {
  const message =
    'webhooks and saved views are on the first server of the file: set CLICKHOUSE_WEBHOOKS_URL to its address';
  logger.warn({ server: servers[0]?.name }, message);
}
const webhookConnections: Component = {
  name: 'ClickHouse connections of webhooks',
  start: async () => undefined,
  stop: async () => webhooks?.close(),
};

const { source, components, probe } =
  servers && config.CLICKHOUSE_SERVERS_FILE ? readServers(config.CLICKHOUSE_SERVERS_FILE) : readOneServer();
const app = buildApp(config, {
  ...{ source, keys, logger, registry, webhooks, webhooksReplica },
  ...(isApart && {
    connectWebhooks: (place: Place) =>
      connectWebhooks(
        webhooksConfigOn(config, place) as ClickHouseConfig,
        LEVELLING_CONNECTIONS,
        servers?.find(({ name }) => name === place.name),
      ),
  }),
  readiness: async () => [...missingKeys(keys), ...(await probe())],
});

const service = runService({
  logger,
  components: [...components, webhookConnections, keys, listening(app, config.HOST, config.PORT)],
  shutdownTimeoutMs: config.SHUTDOWN_TIMEOUT_MS,
  exitOnStdinEnd: config.EXIT_ON_STDIN_END,
});
if (!servers && !isShared(config)) watchForOneServer(config, (error) => service.fail(error));
