import { randomUUID } from 'node:crypto';
import { createLogger } from '@sluice/shared/base/log';
import { createClickHouse } from '@sluice/shared/clickhouse/client';
import { useColdPolicy } from '@sluice/shared/clickhouse/cold-policy';
import { migrate } from '@sluice/shared/clickhouse/migrate';
import { migrateReplicas } from '@sluice/shared/clickhouse/migrate-replicas';
import { watchForOneServer } from '@sluice/shared/clickhouse/one-server';
import { pinnedSettings, replicatedSettings } from '@sluice/shared/clickhouse/settings';
import { isShared, orExit } from '@sluice/shared/config';
import { refuseOtherMethods } from '@sluice/shared/http/other-methods';
import { ownTls } from '@sluice/shared/http/own-tls';
import { createHttpServer, listening } from '@sluice/shared/http/server';
import { createKafka } from '@sluice/shared/kafka/client';
import { TopicDurability } from '@sluice/shared/kafka/topic-durability';
import { topicNames } from '@sluice/shared/kafka/topics';
import { loadServerConfig, type ServerConfig } from '@sluice/shared/servers/server-config';
import { runService } from '@sluice/shared/service/lifecycle';
import { withProcessMetrics } from '@sluice/shared/service/process-metrics';
import { chooseReplica } from '@sluice/storage/clickhouse/replicas';
import { DeadLetters } from '@sluice/storage/dead-letters';
import { LagReader } from '@sluice/storage/kafka/lag';
import { Registry } from 'prom-client';
import { ClickHouseReadings } from './clickhouse-readings.ts';
import { configSchema, type WriterConfig } from './config.ts';
import { ERASURE_TIMEOUT_MS } from './erasure/erasure.ts';
import { declareMeasuredMetrics } from './measured-metrics.ts';
import { createWriterMetrics } from './metrics.ts';
import { registerReplay } from './replay-route.ts';
import { createWriter } from './writer.ts';

/** How long a replica may take to say whether it can be stored at, in milliseconds. */
const CHOICE_MS = 5_000;

const loaded = orExit(() => loadServerConfig(configSchema, process.env));
const { config, server, others, replicas, settings } = await findOwnPlace(loaded);
const logger = createLogger('writer', config.LOG_LEVEL);
const registry = withProcessMetrics(new Registry());
// All that a writer measures is of its server.
if (server) registry.setDefaultLabels({ server: server.name });
const connect = (place: WriterConfig) =>
  createClickHouse(place, {
    application: 'sluice-writer',
    requestTimeoutMs: config.STATEMENT_TIMEOUT_MS + 5_000,
    connectionsMax: 4,
    logger,
    settings,
  });
const connectErasure = (place: WriterConfig) =>
  createClickHouse(place, {
    application: 'sluice-writer-erasure',
    requestTimeoutMs: ERASURE_TIMEOUT_MS + 5_000,
    // One for deleted users, one for expired events, one for those that move, and two for late ones that wait.
    connectionsMax: 5,
    logger,
    settings,
  });
const client = connect(config);
const kafka = createKafka(config, 'sluice-writer', logger);
const topics = Object.values(topicNames(config));
const durability = new TopicDurability(kafka, topics, logger);
const lag = new LagReader({
  kafka,
  groupId: config.KAFKA_GROUP_ID,
  topics,
  range: server?.partitions,
});
const readings = new ClickHouseReadings(
  createClickHouse(config, { application: 'sluice-writer-metrics', requestTimeoutMs: 5_000, connectionsMax: 2 }),
  logger,
);
declareMeasuredMetrics(
  registry,
  {
    lag: () => lag.read(),
    replicas: () => durability.found,
    server: () => readings.server(),
    erasures: () => readings.erasures(),
    backupAge: () => readings.backupAge(),
    audits: () => readings.audits(),
    comparisons: () => readings.comparisons(),
  },
  config,
);
const writer = createWriter(config, {
  kafka,
  client,
  others: others?.map((place) => ({ client: connect(place), erasureClient: connectErasure(place) })),
  // What replicas have in common is no server's of its own.
  server: others ? { name: '', partitions: server?.partitions } : server,
  storedThrough: () => lag.storedThrough(),
  migrate: () => (replicas ? migrateReplicas(replicas, logger) : migrate(config, logger)),
  useColdPolicy: () => useColdPolicy(config),
  erasureClient: connectErasure(config),
  logger,
  metrics: createWriterMetrics(registry),
  writerId: randomUUID(),
  fail: (error) => service.fail(error),
});
const app = createHttpServer({
  ...{ logger, registry, readiness: () => writer.missing() },
  warnings: () => [...durability.warnings, ...writer.warnings],
  allowedHosts: config.ALLOWED_HOSTS,
  tls: ownTls(config, logger),
});
const replays = createClickHouse(config, {
  application: 'sluice-writer-replay',
  requestTimeoutMs: config.STATEMENT_TIMEOUT_MS + 5_000,
  connectionsMax: 1,
  logger,
  settings,
});
registerReplay(app, new DeadLetters(config, replays, kafka));
app.addHook('onClose', () => replays.close());
refuseOtherMethods(app);

const service = runService({
  logger,
  components: [lag, readings, durability, listening(app, config.HOST, config.PORT), writer],
  shutdownTimeoutMs: config.SHUTDOWN_TIMEOUT_MS,
  exitOnStdinEnd: config.EXIT_ON_STDIN_END,
});
// What is told another replica has to reach that one, too. Where replicas share the rows, any of them may answer.
if (!isShared(config))
  for (const place of [config, ...(others ?? [])]) watchForOneServer(place, (error) => service.fail(error));

/** Where a writer stores. */
interface OwnPlace extends Pick<ServerConfig<typeof configSchema>, 'config' | 'server'> {
  /** The configurations of the other replicas; undefined where the server has its rows alone. */
  readonly others: readonly WriterConfig[] | undefined;
  /** The configurations of all replicas of its range, in the order of the file. */
  readonly replicas: readonly WriterConfig[] | undefined;
  /** The settings of everything that is sent to it. */
  readonly settings: typeof pinnedSettings;
}

/** Returns the server that a writer stores at: of replicas the one that was chosen, unless it is read-only and another one is not. */
async function findOwnPlace({ config, server, replicas }: ServerConfig<typeof configSchema>): Promise<OwnPlace> {
  if (!replicas || !server) return { config, server, others: undefined, replicas: undefined, settings: pinnedSettings };
  const configs = replicas.map(({ url }) => ({ ...config, CLICKHOUSE_URL: url }));
  const clients = configs.map((one) =>
    createClickHouse(one, { application: 'sluice-writer', requestTimeoutMs: CHOICE_MS, connectionsMax: 1 }),
  );
  const own = await chooseReplica(clients, replicas.indexOf(server));
  await Promise.all(clients.map((client) => client.close()));
  return {
    config: configs[own] ?? config,
    server: replicas[own],
    others: configs.filter((_, place) => place !== own),
    replicas: configs,
    settings: { ...pinnedSettings, ...replicatedSettings(replicas.length, config.STATEMENT_TIMEOUT_MS) },
  };
}
