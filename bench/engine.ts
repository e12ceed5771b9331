import { randomUUID } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { startClickHouse } from '@sluice/local-stack/clickhouse';
import { type ClickHouseClient, createClickHouse } from '@sluice/shared/clickhouse/client';
import { migrate } from '@sluice/shared/clickhouse/migrate';
import { createLogger } from '@sluice/shared/log';
import { until } from '@sluice/shared/testing/until';
import { createOwnership } from '../services/writer/src/clickhouse/ownership.ts';
import { createStagedStore } from '../services/writer/src/clickhouse/staged-store.ts';
import type { RowBatch } from '../services/writer/src/protocol/row-batch.ts';
import { cpuTimeUs } from './cpu-time.ts';
import { FILL_EVENTS } from './rows.ts';

const TIMEOUT_MS = 600_000;
const EPOCH = { incarnation: 1, generation: 1 };

/** ClickHouse responds when the rows are stored. */
const PLAIN_SETTINGS = { async_insert: 0, wait_end_of_query: 1 } as const;

/** The cost of an operation. */
export interface Cost {
  readonly ms: number;
  /** CPU time of the engine, in microseconds. */
  readonly cpuUs: number;
}

/** A ClickHouse for one benchmark. */
export interface BenchEngine extends AsyncDisposable {
  readonly url: string;
  database(name: string): Promise<BenchDatabase>;
  measure(work: () => Promise<void>): Promise<Cost>;
  /** Stops merges, whose CPU time would otherwise be added to what is measured. */
  stopMerges(): Promise<void>;
  /** Starts merges again, and waits until they are done. */
  resumeMerges(): Promise<void>;
  /** Waits until merges are done, and no other one has begun for two seconds. */
  settleMerges(): Promise<void>;
  /** Drops the page cache of the system; returns whether this process may do that. */
  dropPageCache(): Promise<boolean>;
}

/** A database with the newest schema. */
export interface BenchDatabase {
  readonly client: ClickHouseClient;
  fill(rows: number, days: number): Promise<void>;
  /** Stores a batch as the writer does. */
  store(batch: RowBatch): Promise<void>;
  /** Inserts the same bytes into the table directly. */
  insert(batch: RowBatch, settings?: Readonly<Record<string, number>>): Promise<void>;
  /** Prints how long each statement of the writer took. */
  printStatements(batches: number): void;
  forgetStatements(): void;
  /** Prints and returns whether this many events are stored, each once. If not, the figures are void. */
  verdict(events: number): Promise<boolean>;
}

export async function startBenchEngine(memoryBytesMax?: number): Promise<BenchEngine> {
  await using started = new AsyncDisposableStack();
  const folder = await mkdtemp(join(tmpdir(), 'sluice-bench-'));
  started.defer(() => rm(folder, { recursive: true, force: true }));
  const engine = await startClickHouse({ dataDir: folder, ...(memoryBytesMax && { memoryBytesMax }) });
  started.defer(() => engine.kill9());
  const server = createClient(engine.url, 'default');
  started.defer(() => server.close());

  const running = started.move();
  return {
    url: engine.url,
    async database(name) {
      const database = await openDatabase(engine.url, name);
      running.defer(() => database.client.close());
      return database;
    },
    async measure(work) {
      const cpuBefore = await cpuTimeUs(engine.pid ?? -1);
      const startedAt = performance.now();
      await work();
      const ms = performance.now() - startedAt;
      const cpuUs = (await cpuTimeUs(engine.pid ?? -1)) - cpuBefore;
      return { ms, cpuUs };
    },
    async stopMerges() {
      await server.command({ query: 'SYSTEM STOP MERGES' });
    },
    async resumeMerges() {
      await server.command({ query: 'SYSTEM START MERGES' });
      await until('merges to end', async () => (await readCount(server, 'system.merges')) === 0, TIMEOUT_MS);
    },
    async settleMerges() {
      let idleSince = Date.now();
      await until(
        'merges to end',
        async () => {
          if ((await readCount(server, 'system.merges')) > 0) idleSince = Date.now();
          return Date.now() - idleSince > 2_000;
        },
        TIMEOUT_MS,
      );
    },
    async dropPageCache() {
      return await writeFile('/proc/sys/vm/drop_caches', '1').then(
        () => true,
        () => false,
      );
    },
    [Symbol.asyncDispose]: () => running.disposeAsync(),
  };
}

async function openDatabase(url: string, name: string): Promise<BenchDatabase> {
  await migrate(configOf(url, name), createLogger('bench', 'warn'));
  const client = createClient(url, name);
  const statementMs = new Map<string, number>();
  const timed = timeStatements(client, statementMs);
  const ownership = createOwnership({ client, groupId: name, writerId: randomUUID(), isMember: async () => false });
  const store = createStagedStore({ client: timed, ownership, groupId: name, statementTimeoutMs: TIMEOUT_MS });
  await ownership.begin({ generation: 1, memberId: 'bench', leaderId: 'bench' });

  return {
    client,
    async fill(rows, days) {
      await client.command({ query: FILL_EVENTS, query_params: { rows, days, until: Date.now() } });
      await client.command({ query: 'OPTIMIZE TABLE events' });
    },
    async store(batch) {
      await store.open(batch, EPOCH, () => undefined).store();
    },
    async insert(batch, settings = {}) {
      const { stream } = await client.exec({
        query: 'INSERT INTO events FORMAT JSONEachRow',
        values: Readable.from(
          batch.events.map(({ value }) => value),
          { objectMode: false },
        ),
        clickhouse_settings: { ...PLAIN_SETTINGS, ...settings },
      });
      for await (const _ of stream);
    },
    printStatements(batches) {
      const lines = [...statementMs].map(([name, ms]) => [name, { 'ms a batch, mean': (ms / batches).toFixed(1) }]);
      console.table(Object.fromEntries(lines));
    },
    forgetStatements() {
      statementMs.clear();
    },
    async verdict(events) {
      const query = 'SELECT count() AS rows, uniqExact(workspace_id, timestamp, uuid) AS distinct FROM events';
      const result = await client.query({ query, format: 'JSONEachRow' });
      const [stored] = await result.json<{ rows: number; distinct: number }>();
      const sound = stored?.rows === events && stored.distinct === events;
      console.log(
        sound
          ? `All ${events.toLocaleString('en')} events are stored exactly once.`
          : `VOID: ${events} events were sent, ${stored?.rows} are stored, ${stored?.distinct} of them distinct.`,
      );
      return sound;
    },
  };
}

function configOf(url: string, database: string) {
  return { CLICKHOUSE_URL: url, CLICKHOUSE_DATABASE: database, CLICKHOUSE_USER: 'default', CLICKHOUSE_PASSWORD: '' };
}

function createClient(url: string, database: string): ClickHouseClient {
  const options = { application: 'bench', requestTimeoutMs: TIMEOUT_MS, connectionsMax: 4 };
  return createClickHouse(configOf(url, database), options);
}

async function readCount(client: ClickHouseClient, table: string): Promise<number> {
  const result = await client.query({ query: `SELECT count() AS count FROM ${table}`, format: 'JSONEachRow' });
  return (await result.json<{ count: number }>())[0]?.count ?? 0;
}

/** The same client, which also sums the time of each statement by its name, the last but one part of the query id. */
function timeStatements(client: ClickHouseClient, statementMs: Map<string, number>): ClickHouseClient {
  return new Proxy(client, {
    get(target, property) {
      const member = Reflect.get(target, property);
      if (typeof member !== 'function') return member;
      return async (params: { readonly query_id?: string }) => {
        const startedAt = performance.now();
        const response = await member.call(target, params);
        const name = params.query_id?.split('/').at(-2) ?? 'close-session';
        statementMs.set(name, (statementMs.get(name) ?? 0) + performance.now() - startedAt);
        return response;
      };
    },
  });
}
