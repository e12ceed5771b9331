import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';
import { cacheDir } from '@sluice/local-stack/maven-libs';
import { startNativeRelay } from '@sluice/local-stack/native-relay';
import { findFreePorts } from '@sluice/local-stack/ports';
import { Engines } from '../processes/engines.ts';
import { Absent, type Peer } from './peer.ts';
import { SupervisedProcess } from './supervised-process.ts';
import { createTopic } from './topic.ts';

const SOURCE = join(import.meta.dirname, 'collector');
const TOPIC = 'otlp_logs';
const DATABASE = 'otel';

/** Where Go's own installer puts it, which is not on every PATH. */
const GO_FOLDER = '/usr/local/go/bin';

/**
 * Starts two OpenTelemetry collectors: one takes events as log records and sends them to Kafka, the other stores them in the
 * table of its exporter. Both are set so that they acknowledge only what is kept: Kafka's brokers have it before the response,
 * and the position in Kafka is committed after the insert.
 *
 * @throws {Absent} where Go or its modules are missing
 */
export async function startCollector(running: AsyncDisposableStack): Promise<Peer> {
  const program = await buildCollector();
  const engines = running.use(await Engines.start());
  const folder = await mkdtemp(join(tmpdir(), 'sluice-bench-'));
  running.defer(() => rm(folder, { recursive: true, force: true }));
  const [port = 0, sinkPort = 0] = await findFreePorts(2);
  await createTopic(engines.kafka.brokers, TOPIC);
  await engines.query(`CREATE DATABASE ${DATABASE}`);
  const start = async (name: string, ownPort: number, config: unknown) => {
    const configFile = join(folder, `${name}.json`);
    await writeFile(configFile, JSON.stringify(config));
    return running.use(
      await SupervisedProcess.start({
        name: `the collector that is the ${name}`,
        command: program,
        args: ['--config', `file:${configFile}`],
        logFile: join(folder, `${name}.log`),
        url: `http://127.0.0.1:${ownPort}`,
      }),
    );
  };
  // The local engine ends itself when a connection to its native port is reset, as a killed collector does: a server would not.
  const relay = running.adopt(await startNativeRelay(engines.clickhouse.tcpPort), (started) => started.stop());
  const ingest = await start('way in', port, ingestConfig(port, engines));
  const sink = await start('sink', sinkPort, sinkConfig(sinkPort, engines, relay.port));
  return {
    ...{ engines, form: 'otlp', key: 'none', url: `http://127.0.0.1:${port}` },
    ...{ table: `${DATABASE}.otel_logs`, time: 'Timestamp', uuid: `LogAttributes['uuid']` },
    processes: { ingest, sink },
  };
}

/** Builds the program once for each version of its sources, and returns its file. */
async function buildCollector(): Promise<string> {
  const files = await Promise.all(['main.go', 'go.mod', 'go.sum'].map((file) => readFile(join(SOURCE, file))));
  const hash = createHash('sha256').update(Buffer.concat(files)).digest('hex').slice(0, 12);
  const program = join(cacheDir, `collector-${hash}`);
  if (existsSync(program)) return program;
  console.error('Building an OpenTelemetry collector with Go (some minutes, once)');
  const fresh = `${program}-${process.pid}`;
  const env = { ...process.env, PATH: `${process.env['PATH']}${delimiter}${GO_FOLDER}` };
  try {
    await promisify(execFile)('go', ['build', '-ldflags=-s -w', '-o', fresh, '.'], { cwd: SOURCE, env });
  } catch (error) {
    const [reason] = String((error as { stderr?: string }).stderr || (error as Error).message).split('\n');
    throw new Absent(`Go cannot build it: ${reason}`, { cause: error });
  }
  await rename(fresh, program);
  return program;
}

/** Little is logged, and no metrics are offered: both would need ports. */
const SERVICE = { telemetry: { metrics: { level: 'none' }, logs: { level: 'warn' } } };

function otlpOn(port: number) {
  return { protocols: { http: { endpoint: `127.0.0.1:${port}` } } };
}

function ingestConfig(port: number, { kafka }: Engines) {
  return {
    receivers: { otlp: otlpOn(port) },
    exporters: {
      kafka: {
        brokers: kafka.brokers,
        logs: { topic: TOPIC },
        producer: { required_acks: -1 },
        record_partitioner: { round_robin: {} },
        sending_queue: { enabled: false },
      },
    },
    service: { ...SERVICE, pipelines: { logs: { receivers: ['otlp'], exporters: ['kafka'] } } },
  };
}

/** It listens as well, so that one sees when it is ready. */
function sinkConfig(port: number, { kafka }: Engines, nativePort: number) {
  return {
    receivers: {
      otlp: otlpOn(port),
      kafka: {
        brokers: kafka.brokers,
        group_id: 'collector',
        initial_offset: 'earliest',
        logs: { topics: [TOPIC] },
        message_marking: { after: true },
        error_backoff: { enabled: true, initial_interval: '200ms', max_interval: '2s', max_elapsed_time: '0s' },
        partition_processing: { independent: true, max_in_flight: { records: 64 } },
      },
    },
    exporters: {
      clickhouse: {
        endpoint: `tcp://127.0.0.1:${nativePort}`,
        database: DATABASE,
        async_insert: false,
        retry_on_failure: { initial_interval: '500ms', max_interval: '2s', max_elapsed_time: '0s' },
        sending_queue: {
          wait_for_result: true,
          block_on_overflow: true,
          sizer: 'items',
          queue_size: 200_000,
          batch: { flush_timeout: '500ms', min_size: 50_000, max_size: 50_000 },
        },
      },
    },
    service: { ...SERVICE, pipelines: { logs: { receivers: ['otlp', 'kafka'], exporters: ['clickhouse'] } } },
  };
}
