import { join } from 'node:path';
import { startClickHouse } from '@sluice/local-stack/clickhouse';
import { startKafka } from '@sluice/local-stack/kafka';
import { ensureClickHousePassword, ensureDevKey } from './data-folder.ts';
import { type ServiceContext, type ServiceSpec, serviceProcess } from './service-process.ts';
import type { Settings } from './settings.ts';
import type { ProcessSpec } from './supervisor.ts';

/** After a kill, an engine with much data may take minutes to start. */
const ENGINE_READY_TIMEOUT_MS = 600_000;

/** The processes of `npm start` in stages, and the development key. */
export interface LocalSystem {
  readonly stages: readonly (readonly ProcessSpec[])[];
  readonly devKey: string;
}

/** @param root the repository's folder. */
export async function describeSystem(settings: Settings, root: string, context: ServiceContext): Promise<LocalSystem> {
  const { dataDir, devKey } = settings;
  const { key, keysFile } = await ensureDevKey(dataDir, devKey);
  const password = await ensureClickHousePassword(dataDir);
  const engines: ProcessSpec[] = [];
  if (!settings.externalKafka) engines.push(localKafka(settings, context.report));
  if (!settings.externalClickHouse) engines.push(localClickHouse(settings, password));
  const services = describeServices(settings, root, keysFile, password);
  return { stages: [engines, services.map((spec) => serviceProcess(spec, context))], devKey: key };
}

function localKafka({ dataDir, ports }: Settings, report: (line: string) => void): ProcessSpec {
  return {
    name: 'Kafka',
    async start(signal) {
      const kafka = await startKafka({
        dataDir: join(dataDir, 'kafka'),
        ports: [ports.kafka],
        logDir: join(dataDir, 'logs'),
        readyTimeoutMs: ENGINE_READY_TIMEOUT_MS,
        onProgress: report,
        signal,
      });
      return { pid: kafka.pids[0] ?? 0, exited: kafka.exited(), stop: () => kafka.stop(), kill9: () => kafka.kill9() };
    },
  };
}

function localClickHouse({ dataDir, ports }: Settings, password: string): ProcessSpec {
  return {
    name: 'ClickHouse',
    async start(signal) {
      const clickhouse = await startClickHouse({
        dataDir: join(dataDir, 'clickhouse'),
        backupDir: join(dataDir, 'backups'),
        httpPort: ports.clickhouse,
        password,
        readyTimeoutMs: ENGINE_READY_TIMEOUT_MS,
        logDir: join(dataDir, 'logs'),
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
  password: string,
): ServiceSpec[] {
  const mainFile = (name: string) => join(root, 'services', name, 'src', 'main.ts');
  const kafka = { KAFKA_BROKERS: externalKafka ?? `127.0.0.1:${ports.kafka}` };
  const clickhouse = externalClickHouse
    ? { CLICKHOUSE_URL: externalClickHouse }
    : {
        CLICKHOUSE_URL: `http://127.0.0.1:${ports.clickhouse}`,
        CLICKHOUSE_DATABASE: 'sluice',
        CLICKHOUSE_USER: 'sluice',
        CLICKHOUSE_PASSWORD: password,
      };
  const keys = { API_KEYS_FILE: keysFile };
  const others = { INGEST_URLS: `http://127.0.0.1:${ports.ingest}`, WRITER_URL: `http://127.0.0.1:${ports.writer}` };
  const anonymous = { QUERY_ANONYMOUS_WORKSPACE: 'local' };
  return [
    { name: 'ingest-api', mainFile: mainFile('ingest-api'), port: ports.ingest, env: { ...kafka, ...keys } },
    { name: 'writer', mainFile: mainFile('writer'), port: ports.writer, env: { ...kafka, ...clickhouse } },
    {
      name: 'query-api',
      mainFile: mainFile('query-api'),
      port: ports.query,
      env: { ...clickhouse, ...keys, ...anonymous, ...others },
    },
  ];
}
