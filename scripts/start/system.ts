import { join } from 'node:path';
import { startClickHouse } from '@sluice/local-stack/clickhouse';
import { startKafka } from '@sluice/local-stack/kafka';
import { type ClickHousePasswords, ensureClickHousePasswords, ensureDevKey } from './data-folder.ts';
import { type ServiceContext, type ServiceSpec, serviceProcess } from './service-process.ts';
import type { Settings } from './settings.ts';
import type { ProcessSpec } from './supervisor.ts';

/** After a kill, an engine with much data may take minutes to start. */
const ENGINE_READY_TIMEOUT_MS = 600_000;

/** The database of the local ClickHouse. */
const DATABASE = 'sluice';

/** The processes of `npm start` in stages, and the development key. */
export interface LocalSystem {
  readonly stages: readonly (readonly ProcessSpec[])[];
  readonly devKey: string;
}

/** @param root the repository's folder. */
export async function describeSystem(settings: Settings, root: string, context: ServiceContext): Promise<LocalSystem> {
  const { dataDir, devKey } = settings;
  const { key, keysFile } = await ensureDevKey(dataDir, devKey);
  const passwords = await ensureClickHousePasswords(dataDir);
  const engines: ProcessSpec[] = [];
  if (!settings.externalKafka) engines.push(localKafka(settings, context.report));
  if (!settings.externalClickHouse) engines.push(localClickHouse(settings, passwords));
  const services = describeServices(settings, root, keysFile, passwords);
  const { trench } = settings.ports;
  if (trench !== undefined) services.push(trenchApi(settings, trench, { root, keysFile, key, env: context.baseEnv }));
  return { stages: [engines, services.map((spec) => serviceProcess(spec, context))], devKey: key };
}

function localKafka({ dataDir, logDir, ports }: Settings, report: (line: string) => void): ProcessSpec {
  return {
    name: 'Kafka',
    async start(signal) {
      const kafka = await startKafka({
        dataDir: join(dataDir, 'kafka'),
        ports: [ports.kafka],
        logDir,
        readyTimeoutMs: ENGINE_READY_TIMEOUT_MS,
        onProgress: report,
        signal,
      });
      return { pid: kafka.pids[0] ?? 0, exited: kafka.exited(), stop: () => kafka.stop(), kill9: () => kafka.kill9() };
    },
  };
}

function localClickHouse({ dataDir, logDir, ports }: Settings, passwords: ClickHousePasswords): ProcessSpec {
  return {
    name: 'ClickHouse',
    async start(signal) {
      const clickhouse = await startClickHouse({
        dataDir: join(dataDir, 'clickhouse'),
        backupDir: join(dataDir, 'backups'),
        httpPort: ports.clickhouse,
        password: passwords.administrator,
        accounts: { databases: DATABASE, passwords: passwords.accounts },
        sql: { database: DATABASE, password: passwords.sql },
        readyTimeoutMs: ENGINE_READY_TIMEOUT_MS,
        logDir,
        signal,
      });
      const { pid = 0, stop, kill9 } = clickhouse;
      return { pid, exited: clickhouse.exited(), stop, kill9 };
    },
  };
}

function describeServices(
  { ports, externalKafka, externalClickHouse }: Settings,
  root: string,
  keysFile: string,
  { accounts, sql }: ClickHousePasswords,
): ServiceSpec[] {
  const mainFile = (name: string) => join(root, 'services', name, 'src', 'main.ts');
  const kafka = { KAFKA_BROKERS: externalKafka ?? `127.0.0.1:${ports.kafka}` };
  const local = { CLICKHOUSE_URL: `http://127.0.0.1:${ports.clickhouse}`, CLICKHOUSE_DATABASE: DATABASE };
  const external = externalClickHouse && { CLICKHOUSE_URL: externalClickHouse };
  const writerClickHouse = external || {
    ...local,
    CLICKHOUSE_USER: 'sluice_writer',
    CLICKHOUSE_PASSWORD: accounts.sluice_writer,
    CLICKHOUSE_MIGRATE_USER: 'sluice_migrate',
    CLICKHOUSE_MIGRATE_PASSWORD: accounts.sluice_migrate,
  };
  const queryClickHouse = external || {
    ...local,
    CLICKHOUSE_USER: 'sluice_query',
    CLICKHOUSE_PASSWORD: accounts.sluice_query,
    CLICKHOUSE_SQL_USER: 'sluice_sql',
    CLICKHOUSE_SQL_PASSWORD: sql,
    CLICKHOUSE_WEBHOOKS_USER: 'sluice_webhooks',
    CLICKHOUSE_WEBHOOKS_PASSWORD: accounts.sluice_webhooks,
    // Receivers of a developer are on this machine.
    WEBHOOK_ALLOW_NETWORKS: '127.0.0.0/8,::1',
  };
  const keys = { API_KEYS_FILE: keysFile };
  const writer = `http://127.0.0.1:${ports.writer}`;
  const others = { INGEST_URLS: `http://127.0.0.1:${ports.ingest}`, WRITER_URL: writer, REPLAY_URL: writer };
  const anonymous = { QUERY_ANONYMOUS_WORKSPACE: 'local' };
  return [
    { name: 'ingest-api', mainFile: mainFile('ingest-api'), port: ports.ingest, env: { ...kafka, ...keys } },
    { name: 'writer', mainFile: mainFile('writer'), port: ports.writer, env: { ...kafka, ...writerClickHouse } },
    {
      name: 'query-api',
      mainFile: mainFile('query-api'),
      port: ports.query,
      env: { ...queryClickHouse, ...keys, API_KEYS_CHANGEABLE: 'true', ...anonymous, ...others },
    },
  ];
}

interface TrenchContext {
  readonly root: string;
  readonly keysFile: string;
  /** The development key: that of the admin as well, unless the environment has another one. */
  readonly key: string;
  readonly env: NodeJS.ProcessEnv;
}

/** Trench's HTTP interface, before ingest-api and query-api. */
function trenchApi({ ports }: Settings, port: number, { root, keysFile, key, env }: TrenchContext): ServiceSpec {
  const hasAdminKey = env['TRENCH_ADMIN_KEY'] || env['TRENCH_ADMIN_KEY_FILE'];
  return {
    name: 'trench-api',
    mainFile: join(root, 'services', 'trench-api', 'src', 'main.ts'),
    port,
    env: {
      INGEST_URL: `http://127.0.0.1:${ports.ingest}`,
      QUERY_URL: `http://127.0.0.1:${ports.query}`,
      API_KEYS_FILE: keysFile,
      ...(!hasAdminKey && { TRENCH_ADMIN_KEY: key }),
    },
  };
}
