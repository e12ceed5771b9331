import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { findFreePorts } from '@sluice/local-stack/ports';
import { createLogger } from '@sluice/shared/base/log';
import { migrate } from '@sluice/shared/clickhouse/migrate';
import { Engines } from '../processes/engines.ts';
import type { Peer } from './peer.ts';
import { SupervisedProcess } from './supervised-process.ts';
import { createTopic } from './topic.ts';

const DATABASE = 'pipe';
const TOPIC = 'pipe';

/** ClickHouse's own default is 7.5 seconds: nothing would be visible before. */
const FLUSH_MS = 500;

/** As that of the writer and of the collector. ClickHouse's client has 45 seconds, and most kills would hit one that waits. */
const SESSION_TIMEOUT_MS = 10_000;

/**
 * Starts the same parts without a protocol: Fastify and kafkajs, Kafka, ClickHouse's own engine for Kafka, and a
 * materialized view into the table `events` of the newest schema.
 */
export async function startPipe(running: AsyncDisposableStack): Promise<Peer> {
  const engines = running.use(await Engines.start({ kafkaSessionTimeoutMs: SESSION_TIMEOUT_MS }));
  const folder = await mkdtemp(join(tmpdir(), 'sluice-bench-'));
  running.defer(() => rm(folder, { recursive: true, force: true }));
  const [port = 0] = await findFreePorts(1);
  const url = `http://127.0.0.1:${port}`;
  await createTopic(engines.kafka.brokers, TOPIC);
  const ingest = running.use(
    await SupervisedProcess.start({
      name: 'the way in of the bare pipe',
      command: process.execPath,
      args: [join(import.meta.dirname, 'pipe-process.ts'), port, TOPIC, ...engines.kafka.brokers].map(String),
      logFile: join(folder, 'ingest.log'),
      url,
    }),
  );
  await createTables(engines);
  return {
    ...{
      engines,
      url,
      form: 'submissions',
      key: 'none',
      table: `${DATABASE}.events`,
      time: 'timestamp',
      uuid: 'toString(uuid)',
    },
    processes: { ingest },
  };
}

async function createTables(engines: Engines): Promise<void> {
  const account = { CLICKHOUSE_USER: 'default', CLICKHOUSE_PASSWORD: '' };
  const config = { CLICKHOUSE_URL: engines.clickhouse.url, CLICKHOUSE_DATABASE: DATABASE, ...account };
  await migrate(config, createLogger('bench', 'warn'));
  await engines.query(`
    CREATE TABLE ${DATABASE}.queue (
      workspace_id String, timestamp DateTime64(3, 'UTC'), uuid UUID, event String, user_id String, group_id String,
      anonymous_id String, properties String, context String, received_at DateTime64(6, 'UTC')
    )
    ENGINE = Kafka
    SETTINGS
      kafka_broker_list = '${engines.kafka.brokers.join(',')}', kafka_topic_list = '${TOPIC}',
      kafka_group_name = 'pipe', kafka_format = 'JSONEachRow', kafka_flush_interval_ms = ${FLUSH_MS}`);
  await engines.query(
    `CREATE MATERIALIZED VIEW ${DATABASE}.rows TO ${DATABASE}.events AS SELECT * FROM ${DATABASE}.queue`,
  );
}
