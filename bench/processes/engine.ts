import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type LocalClickHouse, type LocalClickHouseOptions, startClickHouse } from '@sluice/local-stack/clickhouse';
import type { ClickHouseClient } from '@sluice/shared/clickhouse/client';
import { until } from '@sluice/shared/testing/until';
import { cpuTimeUs } from '../measure/cpu-time.ts';
import { BenchDatabase, createClient, TIMEOUT_MS } from './database.ts';

/** The cost of an operation. */
export interface Cost {
  readonly ms: number;
  /** CPU time of the engine, in microseconds. */
  readonly cpuUs: number;
}

/** How long no merge must have run, in milliseconds. */
const SETTLE_MS = 2_000;

/** Statements of requests of query-api since a time. */
const STATEMENTS = `
  SELECT
    toInt32(countIf(type = 'QueryStart')) - toInt32(countIf(type != 'QueryStart')) AS running,
    sum(ProfileEvents['UserTimeMicroseconds'] + ProfileEvents['SystemTimeMicroseconds']) / 1000 AS cpuMs
  FROM system.query_log
  WHERE is_initial_query AND http_user_agent = 'sluice-query-api' AND log_comment != ''
    AND query_start_time_microseconds >= fromUnixTimestamp64Milli({from:Int64})`;

/** The accounts of the services, and whether it knows what each statement cost; default neither. */
type EngineOptions = Pick<LocalClickHouseOptions, 'accounts' | 'queryLog'>;

/** A ClickHouse for one benchmark. */
export class BenchEngine implements AsyncDisposable {
  readonly #clickhouse: LocalClickHouse;
  readonly #server: ClickHouseClient;
  readonly #running: AsyncDisposableStack;

  static async start(memoryBytesMax?: number, options: EngineOptions = {}): Promise<BenchEngine> {
    await using started = new AsyncDisposableStack();
    const folder = await mkdtemp(join(tmpdir(), 'sluice-bench-'));
    started.defer(() => rm(folder, { recursive: true, force: true }));
    const clickhouse = await startClickHouse({
      dataDir: folder,
      ...options,
      ...(memoryBytesMax && { memoryBytesMax }),
    });
    started.defer(() => clickhouse.kill9());
    const server = createClient(clickhouse.url, 'default');
    started.defer(() => server.close());
    return new BenchEngine(clickhouse, server, started.move());
  }

  private constructor(clickhouse: LocalClickHouse, server: ClickHouseClient, running: AsyncDisposableStack) {
    this.#clickhouse = clickhouse;
    this.#server = server;
    this.#running = running;
  }

  get url(): string {
    return this.#clickhouse.url;
  }

  /** Where other servers reach it over ClickHouse's native protocol. */
  get native(): string {
    return `127.0.0.1:${this.#clickhouse.tcpPort}`;
  }

  async createDatabase(name: string): Promise<BenchDatabase> {
    return this.#running.use(await BenchDatabase.create(this.url, name));
  }

  async measure(work: () => Promise<void>): Promise<Cost> {
    const pid = this.#clickhouse.pid ?? -1;
    const cpuBefore = await cpuTimeUs(pid);
    const startedAt = performance.now();
    await work();
    const ms = performance.now() - startedAt;
    return { ms, cpuUs: (await cpuTimeUs(pid)) - cpuBefore };
  }

  /** Returns the CPU time that statements of query-api's requests took meanwhile, in milliseconds. It needs the log of queries. */
  async statementsCpuMs(work: () => Promise<unknown>): Promise<number> {
    const from = Date.now();
    await work();
    let cpuMs = 0;
    // A statement is logged when it begins, and again when it has ended: perhaps after the last row was received.
    const ended = async () => {
      await this.#server.command({ query: 'SYSTEM FLUSH LOGS query_log' });
      const result = await this.#server.query({ query: STATEMENTS, query_params: { from }, format: 'JSONEachRow' });
      const [log] = await result.json<{ running: number; cpuMs: number }>();
      cpuMs = log?.cpuMs ?? 0;
      return log?.running === 0;
    };
    await until('statements to end', ended, TIMEOUT_MS);
    return cpuMs;
  }

  /** Stops merges, whose CPU time would otherwise be added to what is measured. */
  async stopMerges(): Promise<void> {
    await this.#server.command({ query: 'SYSTEM STOP MERGES' });
  }

  /** Starts merges again, and waits until they are done. */
  async resumeMerges(): Promise<void> {
    await this.#server.command({ query: 'SYSTEM START MERGES' });
    await this.settleMerges(0);
  }

  /** Waits until merges are done, and no other one has begun for two seconds. */
  async settleMerges(settleMs = SETTLE_MS): Promise<void> {
    let idleSince = Date.now();
    const settled = async () => {
      const merging = await this.#isMerging();
      if (merging) idleSince = Date.now();
      return !merging && Date.now() - idleSince >= settleMs;
    };
    await until('merges to end', settled, TIMEOUT_MS);
  }

  /** Drops ClickHouse's caches, and the page cache of the system if this process may do that. */
  async dropCaches(): Promise<void> {
    for (const cache of ['MARK', 'UNCOMPRESSED', 'INDEX MARK', 'INDEX UNCOMPRESSED']) {
      await this.#server.command({ query: `SYSTEM DROP ${cache} CACHE` });
    }
    await this.#server.command({ query: 'SYSTEM DROP TEXT INDEX CACHES' });
    await writeFile('/proc/sys/vm/drop_caches', '1').catch(() => undefined);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#running.disposeAsync();
  }

  async #isMerging(): Promise<boolean> {
    const result = await this.#server.query({ query: 'SELECT 1 FROM system.merges LIMIT 1', format: 'JSONEachRow' });
    return (await result.json()).length > 0;
  }
}
