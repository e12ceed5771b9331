import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startClickHouse } from '@sluice/local-stack/clickhouse';
import { startKafka } from '@sluice/local-stack/kafka';
import { sleep } from '@sluice/shared/base/retry';
import { TEST_ACCOUNTS } from '@sluice/shared/clickhouse/testing/test-accounts';
import { until } from '@sluice/shared/testing/until';
import { ONE_ACCOUNT } from '../../tests/kit/other-version.ts';
import { type Pipeline, startPipeline } from '../../tests/kit/pipeline.ts';
import { cpuTimeUs, difference, residentBytes } from '../measure/cpu-time.ts';
import { type StoredEvents, Tally } from '../measure/tally.ts';
import { Loader, type LoadResult, type LoadShape } from './load.ts';

/** The longest time until all accepted events are stored, in milliseconds. */
const STORED_TIMEOUT_MS = 240_000;

/** How long no merge must have run, in milliseconds. */
const SETTLE_MS = 1_000;
const SETTLE_MS_MAX = 30_000;

/** The processes through which events go. */
export const PROCESS_NAMES = ['ingest-api', 'Kafka', 'writer', 'ClickHouse'] as const;

export type ProcessName = (typeof PROCESS_NAMES)[number] | 'query-api';

export interface SystemOptions {
  /** Added to the environment of the services. */
  readonly env?: Readonly<Record<string, string>>;
  /** The folder of the repository that the services run from. Default: this one. */
  readonly checkout?: string | undefined;
}

/** What the events of a load cost. */
export interface LoadCost extends Pick<LoadResult, 'events' | 'latencyMs'> {
  readonly requestsPerSecond: number;
  /** Until all were stored. */
  readonly eventsPerSecond: number;
  /** CPU time of each process, in microseconds an event. */
  readonly cpuUs: Readonly<Record<string, number>>;
}

interface Engines {
  readonly kafkaBrokers: readonly string[];
  readonly clickhouseUrl: string;
  readonly clickhousePid: number;
  readonly kafkaPid: number;
}

/** What tests set otherwise and what costs CPU time. An empty variable counts as unset: the services take their own defaults. */
const DEFAULTS = {
  KAFKA_PARTITIONS: '',
  KAFKA_SESSION_TIMEOUT_MS: '',
  BATCH_AGE_MS: '',
  ERASURE_INTERVAL_MS: '',
  ERASURE_DELAY_MS: '',
  ERASURE_GATHER_MS: '',
  STATEMENT_TIMEOUT_MS: '',
};

/** The services and engines of one benchmark, each a process, and the load on them. */
export class System implements AsyncDisposable {
  readonly pipeline: Pipeline;
  readonly loader: Loader;
  /** Counts the events that {@link load} and others have sent. */
  readonly tally = new Tally();
  readonly kafkaBrokers: readonly string[];
  readonly clickhouseUrl: string;
  readonly clickhousePid: number;
  readonly #kafkaPid: number;
  readonly #running: AsyncDisposableStack;
  #nextEvent = 0;

  static async start({ env = {}, checkout }: SystemOptions = {}): Promise<System> {
    await using started = new AsyncDisposableStack();
    const folder = await mkdtemp(join(tmpdir(), 'sluice-bench-'));
    started.defer(() => rm(folder, { recursive: true, force: true }));
    const kafka = await startKafka({ dataDir: join(folder, 'kafka'), onProgress: (line) => console.error(line) });
    started.defer(() => kafka.kill9());
    const clickhouse = await startClickHouse({ dataDir: join(folder, 'clickhouse'), accounts: TEST_ACCOUNTS });
    started.defer(() => clickhouse.kill9());
    const pipeline = await startPipeline({
      kafkaBrokers: kafka.brokers,
      clickhouseUrl: clickhouse.url,
      name: 'bench',
      env: { ...DEFAULTS, ...env },
      ...(checkout !== undefined && { checkout, envOf: ONE_ACCOUNT }),
    });
    started.defer(() => pipeline.stop());
    const loader = started.use(await Loader.start());
    const engines = {
      kafkaBrokers: kafka.brokers,
      clickhouseUrl: clickhouse.url,
      clickhousePid: clickhouse.pid ?? -1,
      kafkaPid: kafka.pids[0] ?? -1,
    };
    return new System(pipeline, loader, engines, started.move());
  }

  private constructor(pipeline: Pipeline, loader: Loader, engines: Engines, running: AsyncDisposableStack) {
    this.pipeline = pipeline;
    this.loader = loader;
    this.kafkaBrokers = engines.kafkaBrokers;
    this.clickhouseUrl = engines.clickhouseUrl;
    this.clickhousePid = engines.clickhousePid;
    this.#kafkaPid = engines.kafkaPid;
    this.#running = running;
  }

  /** Reserves numbers for events that are not sent by {@link load}, and returns the first. */
  reserveNumbers(count: number): number {
    const first = this.#nextEvent;
    this.#nextEvent += count;
    return first;
  }

  /** Sends a load to ingest-api, one at a time. Returns when the last response is there. @throws {VoidRun} when a request was refused */
  async load(shape: LoadShape): Promise<LoadResult> {
    const { key, services } = this.pipeline;
    const firstEvent = this.#nextEvent;
    const result = await this.loader.run({ ...shape, url: services['ingest-api'].url, key, firstEvent });
    this.#nextEvent += result.events;
    this.tally.add(result);
    return result;
  }

  /** Sends a load, waits until all events are stored, and returns how many were stored in a second. */
  async measureThroughput(shape: LoadShape): Promise<number> {
    const startedAt = performance.now();
    const { events } = await this.load(shape);
    await this.allStored();
    return (1_000 * events) / (performance.now() - startedAt);
  }

  /** Sends a load, and measures what its events cost until all are stored, visible and merged. */
  async measureCost(shape: LoadShape): Promise<LoadCost> {
    const before = await this.cpuTimes();
    const startedAt = performance.now();
    const { events, requests, seconds, latencyMs } = await this.load(shape);
    await this.allStored();
    const storedAfter = (performance.now() - startedAt) / 1_000;
    await this.mergesSettled();
    const used = difference(before, await this.cpuTimes());
    return {
      events,
      requestsPerSecond: requests / seconds,
      eventsPerSecond: events / storedAfter,
      latencyMs,
      cpuUs: Object.fromEntries(Object.entries(used).map(([name, us]) => [name, us / events])),
    };
  }

  /** Waits until as many rows are stored as events were accepted. */
  async allStored(): Promise<void> {
    const sql = `SELECT count() FROM ${this.pipeline.database}.events`;
    const { events } = this.tally;
    const enough = async () => Number(await this.#query(sql)) >= events;
    await until(`${events} events to be stored`, enough, STORED_TIMEOUT_MS);
  }

  /** @throws {VoidRun} unless every accepted event is stored once */
  async expectExactlyOnce(): Promise<void> {
    await this.allStored();
    this.tally.expectExactly(await this.#stored());
  }

  /** Waits until merges are done, and no other one has begun for a second; half a minute at most. */
  async mergesSettled(): Promise<void> {
    const endAt = Date.now() + SETTLE_MS_MAX;
    for (let idleSince = Date.now(); Date.now() < Math.min(idleSince + SETTLE_MS, endAt); ) {
      if ((await this.#query('SELECT count() FROM system.merges')) !== '0\n') idleSince = Date.now();
      await sleep(100);
    }
  }

  /** CPU time that each process has used so far, in microseconds. */
  async cpuTimes(names: readonly ProcessName[] = PROCESS_NAMES): Promise<Record<string, number>> {
    const times = names.map(async (name) => [name, await cpuTimeUs(this.#pidOf(name))] as const);
    return Object.fromEntries(await Promise.all(times));
  }

  /** Resident memory of a process, in bytes. */
  async memory(name: ProcessName): Promise<number> {
    return await residentBytes(this.#pidOf(name));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#running.disposeAsync();
  }

  #pidOf(name: ProcessName): number {
    if (name === 'Kafka') return this.#kafkaPid;
    return name === 'ClickHouse' ? this.clickhousePid : this.pipeline.services[name].pid;
  }

  async #stored(): Promise<StoredEvents> {
    // The uuids of calls are derived, of version 5, and have no numbers.
    const number = `if(substring(toString(uuid), 15, 1) = '5', 0, reinterpretAsUInt64(reverse(unhex(substring(toString(uuid), 25)))))`;
    const sql = `SELECT toString(count()), toString(uniqExact(uuid)), toString(sum(${number})) FROM ${this.pipeline.database}.events FORMAT TSV`;
    const [rows = '', distinct = '', numbersSum = ''] = (await this.#query(sql)).trim().split('\t');
    return { rows: Number(rows), distinct: Number(distinct), numbersSum };
  }

  async #query(sql: string): Promise<string> {
    const response = await fetch(this.clickhouseUrl, { method: 'POST', body: sql });
    const text = await response.text();
    if (!response.ok) throw new Error(text);
    return text;
  }
}
