import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startClickHouse } from '@sluice/local-stack/clickhouse';
import { startKafka } from '@sluice/local-stack/kafka';
import { type Pipeline, startPipeline } from '../tests/support/pipeline.ts';
import { until } from '../tests/support/service.ts';
import { cpuTimeUs } from './cpu-time.ts';

/** The longest time until all accepted events are stored, in milliseconds. */
const STORED_TIMEOUT_MS = 120_000;

export const PROCESS_NAMES = ['ingest-api', 'Kafka', 'writer', 'ClickHouse'] as const;

export type ProcessName = (typeof PROCESS_NAMES)[number];

/** Counts of the stored events. */
export interface StoredEvents {
  readonly rows: number;
  readonly distinct: number;
  /** The sum of their numbers, in decimal; see event.ts. */
  readonly numbersSum: string;
}

/** The services and engines of one benchmark, each a process. */
export interface System extends AsyncDisposable {
  readonly pipeline: Pipeline;
  /** CPU time that each process has used so far, in microseconds. */
  cpuTimes(names?: readonly ProcessName[]): Promise<Record<string, number>>;
  stored(): Promise<StoredEvents>;
  /** Waits until this many rows are stored. */
  storedAtLeast(rows: number): Promise<void>;
}

export async function startSystem(env: Readonly<Record<string, string>> = {}): Promise<System> {
  await using started = new AsyncDisposableStack();
  const folder = await mkdtemp(join(tmpdir(), 'sluice-bench-'));
  started.defer(() => rm(folder, { recursive: true, force: true }));
  const kafka = await startKafka({ dataDir: join(folder, 'kafka'), onProgress: (line) => console.error(line) });
  started.defer(() => kafka.kill9());
  const clickhouse = await startClickHouse({ dataDir: join(folder, 'clickhouse') });
  started.defer(() => clickhouse.kill9());
  const pipeline = await startPipeline({
    kafkaBrokers: kafka.brokers,
    clickhouseUrl: clickhouse.url,
    name: 'bench',
    // The default; tests have fewer.
    env: { KAFKA_PARTITIONS: '48', ...env },
  });
  started.defer(() => pipeline.stop());

  async function stored(): Promise<StoredEvents> {
    const number = `reinterpretAsUInt64(reverse(unhex(substring(toString(uuid), 25))))`;
    const sql = `SELECT toString(count()), toString(uniqExact(uuid)), toString(sum(${number})) FROM ${pipeline.database}.events FORMAT TSV`;
    const response = await fetch(clickhouse.url, { method: 'POST', body: sql });
    if (!response.ok) throw new Error(await response.text());
    const [rows = '', distinct = '', numbersSum = ''] = (await response.text()).trim().split('\t');
    return { rows: Number(rows), distinct: Number(distinct), numbersSum };
  }

  async function countRows(): Promise<number> {
    const response = await fetch(clickhouse.url, {
      method: 'POST',
      body: `SELECT count() FROM ${pipeline.database}.events`,
    });
    return Number(await response.text());
  }

  const running = started.move();
  return {
    pipeline,
    async cpuTimes(names = PROCESS_NAMES) {
      const { services } = pipeline;
      const pids = {
        'ingest-api': services['ingest-api'].pid,
        Kafka: kafka.pids[0] ?? -1,
        writer: services.writer.pid,
        ClickHouse: clickhouse.pid ?? -1,
      };
      const times = names.map(async (name) => [name, await cpuTimeUs(pids[name])] as const);
      return Object.fromEntries(await Promise.all(times));
    },
    stored,
    async storedAtLeast(rows) {
      await until(`${rows} events to be stored`, async () => (await countRows()) >= rows, STORED_TIMEOUT_MS);
    },
    [Symbol.asyncDispose]: () => running.disposeAsync(),
  };
}

/** What each process has used between two readings. */
export function difference(
  before: Readonly<Record<string, number>>,
  after: Readonly<Record<string, number>>,
): Record<string, number> {
  return Object.fromEntries(Object.entries(after).map(([name, value]) => [name, value - (before[name] ?? 0)]));
}
