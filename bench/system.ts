import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startClickHouse } from '@sluice/local-stack/clickhouse';
import { startKafka } from '@sluice/local-stack/kafka';
import { sleep } from '@sluice/shared/retry';
import { until } from '@sluice/shared/testing/until';
import { type Pipeline, startPipeline } from '../tests/support/pipeline.ts';
import { cpuTimeUs, residentBytes } from './cpu-time.ts';
import type { LoadSpec } from './load.ts';

/** The longest time until all accepted events are stored, in milliseconds. */
const STORED_TIMEOUT_MS = 120_000;

/** How long no merge must have run, in milliseconds. */
const SETTLE_MS = 1_000;
const SETTLE_MS_MAX = 30_000;

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
  /** Where the load goes. */
  readonly target: Pick<LoadSpec, 'url' | 'key'>;
  readonly clickhousePid: number;
  readonly clickhouseUrl: string;
  readonly kafkaBrokers: readonly string[];
  /** Returns what a SELECT returns, in the format of its own. @throws with ClickHouse's error */
  query(sql: string): Promise<string>;
  /** Waits until merges are done, and no other one has begun for a second; half a minute at most. */
  mergesSettled(): Promise<void>;
  /** Resident memory of each process, in bytes. */
  memory(): Promise<Record<ProcessName, number>>;
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
    // The defaults; tests have others.
    env: { KAFKA_PARTITIONS: '48', BATCH_AGE_MS: '900', ...env },
  });
  started.defer(() => pipeline.stop());

  async function query(sql: string): Promise<string> {
    const response = await fetch(clickhouse.url, { method: 'POST', body: sql });
    const text = await response.text();
    if (!response.ok) throw new Error(text);
    return text;
  }

  async function stored(): Promise<StoredEvents> {
    // The uuids of calls are derived, of version 5, and have no numbers.
    const number = `if(substring(toString(uuid), 15, 1) = '5', 0, reinterpretAsUInt64(reverse(unhex(substring(toString(uuid), 25)))))`;
    const sql = `SELECT toString(count()), toString(uniqExact(uuid)), toString(sum(${number})) FROM ${pipeline.database}.events FORMAT TSV`;
    const [rows = '', distinct = '', numbersSum = ''] = (await query(sql)).trim().split('\t');
    return { rows: Number(rows), distinct: Number(distinct), numbersSum };
  }

  const countRows = async () => Number(await query(`SELECT count() FROM ${pipeline.database}.events`));

  async function mergesSettled(): Promise<void> {
    const endAt = Date.now() + SETTLE_MS_MAX;
    for (let idleSince = Date.now(); Date.now() < Math.min(idleSince + SETTLE_MS, endAt); ) {
      if ((await query('SELECT count() FROM system.merges')) !== '0\n') idleSince = Date.now();
      await sleep(100);
    }
  }

  const pids = (): Record<ProcessName, number> => ({
    'ingest-api': pipeline.services['ingest-api'].pid,
    Kafka: kafka.pids[0] ?? -1,
    writer: pipeline.services.writer.pid,
    ClickHouse: clickhouse.pid ?? -1,
  });

  const running = started.move();
  return {
    pipeline,
    target: { url: pipeline.services['ingest-api'].url, key: pipeline.key },
    clickhousePid: pids().ClickHouse,
    clickhouseUrl: clickhouse.url,
    kafkaBrokers: kafka.brokers,
    query,
    mergesSettled,
    async cpuTimes(names = PROCESS_NAMES) {
      const times = names.map(async (name) => [name, await cpuTimeUs(pids()[name])] as const);
      return Object.fromEntries(await Promise.all(times));
    },
    async memory() {
      const sizes = PROCESS_NAMES.map(async (name) => [name, await residentBytes(pids()[name])] as const);
      return Object.fromEntries(await Promise.all(sizes)) as Record<ProcessName, number>;
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
