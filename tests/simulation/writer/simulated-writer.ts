import type { ClickHouseClient } from '@sluice/shared/clickhouse/client';
import { createKafka } from '@sluice/shared/kafka/client';
import { chooseReplica } from '@sluice/storage/clickhouse/replicas';
import { LagReader } from '@sluice/storage/kafka/lag';
import { nameOf } from '@sluice/storage/protocol/position';
import { configSchema, type WriterConfig } from '@sluice/writer/config';
import { createWriterMetrics } from '@sluice/writer/metrics';
import { createWriter, type Writer, type WriterClients } from '@sluice/writer/writer';
import { Registry } from 'prom-client';
import type { Address } from '../clickhouse/simulated-clickhouse.ts';
import { createSimulatedClient } from '../clickhouse/simulated-client.ts';
import { SimulatedProcess } from '../world/simulated-process.ts';
import { createTraceLogger } from '../world/trace-logger.ts';
import type { Server } from './server.ts';
import type { World } from './world.ts';

/** After how long the supervisor starts a writer again that has ended, in milliseconds. */
const RESTART_MS = 1_000;

/** Why a writer may end by itself: only a new process helps where kafkajs has been silent for long, or it is to begin at another replica. */
const EXPECTED_ENDS = ['kafkajs has not fetched', 'the own replica of ClickHouse is read-only'];

/** After how long the erasure gives a response up, in milliseconds; in production it is ten minutes. */
const ERASURE_TIMEOUT_MS = 30_000;

/** How the writers of a schedule differ from those of production: much passes sooner. */
export interface Haste {
  /** Whether statements and sessions are given up sooner than an operator may set. */
  readonly isHasty: boolean;
  /** Whether deleted users are erased as soon as they may be. */
  readonly erases: boolean;
  /** Whether fast properties are declared, and their columns are filled as soon as they may be. Default: none are. */
  readonly fills?: boolean;
}

export function writerConfig(partitions: number, { isHasty, erases, fills = false }: Haste): WriterConfig {
  const delayMs = isHasty ? 2_500 : 5_000;
  const config = configSchema.parse({
    KAFKA_BROKERS: 'kafka-1:9092',
    KAFKA_TOPIC_PREFIX: 'sim.',
    KAFKA_PARTITIONS: String(partitions),
    CLICKHOUSE_URL: 'http://clickhouse:8123',
    STATEMENT_TIMEOUT_MS: isHasty ? '2000' : '4000',
    ERASURE_INTERVAL_MS: erases ? '300' : '10000',
    ERASURE_DELAY_MS: String(delayMs),
    ERASURE_GATHER_MS: String(delayMs),
    ...(fills && { RETENTION_INTERVAL_MS: '500' }),
  });
  // A writer that is frozen or killed is soon removed from the group, while its last statement may still be running.
  return isHasty ? { ...config, KAFKA_SESSION_TIMEOUT_MS: 600 } : config;
}

/** The place of a writer in a deployment: its process may end, and a supervisor starts it again. */
export class WriterPlace {
  readonly #world: World;
  readonly server: Server;
  readonly name: string;
  #starts = 0;
  #process: SimulatedProcess | undefined;
  #writer: Writer | undefined;
  #lag: LagReader | undefined;
  /** The name of the replica that it stores at; undefined while it does not. */
  #own: string | undefined;

  constructor(world: World, server: Server, name: string) {
    this.#world = world;
    this.server = server;
    this.name = name;
  }

  /** Whether it stores at a replica. */
  storesAt({ name }: Address): boolean {
    return this.#process !== undefined && this.#own === name;
  }

  start(): void {
    if (this.#process) return;
    this.#starts += 1;
    const process = new SimulatedProcess(this.name);
    this.#process = process;
    this.#writer = undefined;
    this.#own = undefined;
    const { clickhouse, balancer, replicas, shared } = this.server;
    if (!replicas) {
      this.#run(process, shared ?? balancer ?? clickhouse);
      return;
    }
    // The file of servers, as it is when the process starts.
    const addresses = replicas.known.map((one) => one.clickhouse);
    this.#world.time.runAs(process, async () => {
      const clients = addresses.map((address) => this.#client(address));
      const own = await chooseReplica(clients, (this.#starts + this.server.writers.indexOf(this)) % clients.length);
      this.#own = addresses[own]?.name;
      this.#world.note(`${this.name} stores at ${this.#own}`);
      const others = addresses.filter((_, place) => place !== own);
      this.#run(process, addresses[own] ?? clickhouse, others);
    });
  }

  /** @param timeoutMs after how long a response is given up */
  #client(address: Address, timeoutMs = this.server.config.STATEMENT_TIMEOUT_MS + 5_000): ClickHouseClient {
    return createSimulatedClient(address, this.#world.network, timeoutMs, this.server.settings);
  }

  #clients(address: Address): WriterClients {
    return { client: this.#client(address), erasureClient: this.#client(address, ERASURE_TIMEOUT_MS) };
  }

  #run(process: SimulatedProcess, address: Address, others?: readonly Address[]): void {
    const { time } = this.#world;
    const { config, name, range } = this.server;
    const logger = createTraceLogger((line) => this.#world.note(`${this.name} ${line}`));
    time.runAs(process, () => {
      const kafka = createKafka(config, this.name, logger);
      const { KAFKA_GROUP_ID: groupId } = config;
      this.#lag = new LagReader({ kafka, groupId, topics: Object.values(this.#world.topics), range });
      this.#writer = createWriter(config, {
        kafka,
        ...this.#clients(address),
        others: others?.map((one) => this.#clients(one)),
        migrate: async () => undefined,
        useColdPolicy: async () => undefined,
        // Replicas have no name in common.
        server: name === '' ? undefined : { name: others ? '' : name, partitions: range },
        storedThrough: async () => await this.#lag?.storedThrough(),
        logger,
        metrics: createWriterMetrics(new Registry()),
        writerId: `${this.name}-${this.#starts}`,
        fail: (error) => this.#fail(process, error as Error),
      });
      this.#writer.start().catch((error) => this.#fail(process, error as Error));
    });
  }

  /** Returns what the writer says that is wrong: what keeps it from storing, and what is not stored. */
  async complaints(): Promise<readonly string[]> {
    const [writer, lag] = [this.#writer, this.#lag];
    if (!writer || !lag || !this.#process) return ['it does not run'];
    return await this.#world.time.runAs(this.#process, async () => {
      // The load has rows that cannot be stored: many of them raise an alarm.
      const missing = (await writer.missing()).filter((phrase) => !phrase.includes('rows could not be stored'));
      // All writers of a server say the same of it.
      if (this !== this.server.writers[0]) return missing;
      const lags = await lag.read();
      const behind = (lags ?? []).filter(({ messages, seconds }) => messages > 0 || seconds > 0);
      return [...missing, ...behind.map((one) => `${nameOf(one)} is behind`), ...(lags ? [] : ['no lag'])];
    });
  }

  /** Ends the process at once, wherever it is. */
  kill(): void {
    this.#process?.kill();
    this.#process = undefined;
  }

  freeze(): void {
    this.#process?.freeze();
  }

  thaw(): void {
    const process = this.#process;
    process?.thaw((run) => this.#world.time.after(0, run, process));
  }

  #fail(process: SimulatedProcess, error: Error): void {
    if (process.isDead) return;
    const isExpected = EXPECTED_ENDS.some((text) => error.message.startsWith(text));
    if (!isExpected) this.#world.report(`${this.name} ends: ${error.stack}`);
    this.#world.note(`${this.name} ends: ${error.message}`);
    this.kill();
    this.#world.time.after(RESTART_MS, () => this.start());
  }
}
