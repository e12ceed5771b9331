import { until } from '@sluice/shared/testing/until';
import { ONE_ACCOUNT } from '../../tests/kit/other-version.ts';
import { type Pipeline, startPipeline } from '../../tests/kit/pipeline.ts';
import { cpuTimeUs, difference, residentBytes } from '../measure/cpu-time.ts';
import { type StoredEvents, Tally } from '../measure/tally.ts';
import { Engines } from './engines.ts';
import { Loader, type LoadResult, type LoadShape } from './load.ts';

/** The longest time until all accepted events are stored, in milliseconds. */
const STORED_TIMEOUT_MS = 240_000;

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
  readonly engines: Engines;
  readonly #running: AsyncDisposableStack;
  #nextEvent = 0;

  static async start({ env = {}, checkout }: SystemOptions = {}): Promise<System> {
    await using started = new AsyncDisposableStack();
    const engines = started.use(await Engines.start());
    const pipeline = await startPipeline({
      kafkaBrokers: engines.kafka.brokers,
      clickhouseUrl: engines.clickhouse.url,
      name: 'bench',
      env: { ...DEFAULTS, ...env },
      ...(checkout !== undefined && { checkout, envOf: ONE_ACCOUNT }),
    });
    started.defer(() => pipeline.stop());
    const loader = started.use(await Loader.start());
    return new System(pipeline, loader, engines, started.move());
  }

  private constructor(pipeline: Pipeline, loader: Loader, engines: Engines, running: AsyncDisposableStack) {
    this.pipeline = pipeline;
    this.loader = loader;
    this.engines = engines;
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
    await this.engines.mergesSettled();
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
    const enough = async () => Number(await this.engines.query(sql)) >= events;
    await until(`${events} events to be stored`, enough, STORED_TIMEOUT_MS);
  }

  /** @throws {VoidRun} unless every accepted event is stored once */
  async expectExactlyOnce(): Promise<void> {
    await this.allStored();
    this.tally.expectExactly(await this.#stored());
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
    return name === 'Kafka' || name === 'ClickHouse' ? this.engines.pidOf(name) : this.pipeline.services[name].pid;
  }

  async #stored(): Promise<StoredEvents> {
    // The uuids of calls are derived, of version 5, and have no numbers.
    const number = `if(substring(toString(uuid), 15, 1) = '5', 0, reinterpretAsUInt64(reverse(unhex(substring(toString(uuid), 25)))))`;
    const sql = `SELECT toString(count()), toString(uniqExact(uuid)), toString(sum(${number})) FROM ${this.pipeline.database}.events FORMAT TSV`;
    const [rows = '', distinct = '', numbersSum = ''] = (await this.engines.query(sql)).trim().split('\t');
    return { rows: Number(rows), distinct: Number(distinct), numbersSum };
  }
}
