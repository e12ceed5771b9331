import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { OwnDatabase } from '@sluice/storage/clickhouse/own-database';
import { WORKSPACE } from '../data/filter-queries.ts';
import { storeTraffic } from '../data/store-traffic.ts';
import { createTraffic, DAY_MS } from '../data/traffic.ts';
import type { BenchDatabase } from '../processes/database.ts';
import { BenchEngine } from '../processes/engine.ts';
import { QueryApi } from '../processes/query-api.ts';
import { type Bar, type Benchmark, type Figure, figureOf, median, VoidRun } from '../report/benchmark.ts';

const DAYS = 90;
const MEMORY_BYTES = 3 * 1_024 ** 3;

/** How often a read is measured in a round, of which the median counts. */
const TURNS = 9;

/** Numbers of partitions that can be split into equal ranges. */
const PARTITIONS = 48;
const LAYOUTS = [2, 4] as const;

export const SERVERS: Benchmark<{ rounds: number; events: number }> = {
  name: 'servers',
  title: 'Reading several ClickHouse servers',
  method:
    'The same events in one ClickHouse, and split over two and over four, each a process of its own with a range of partitions. The ' +
    'ratios are of response times, measured in turn. All processes share the cores of one machine, so this shows what the ranges ' +
    'cost, and not what the processors and disks of more machines bring.',
  size: { rounds: 5, events: 1_000_000 },
  measure,
};

interface Read {
  readonly name: string;
  readonly path: string;
  readonly parameters: Readonly<Record<string, string>>;
  /** The bound of the time divided by that of one server. */
  readonly bar?: Bar;
}

/** A layout of servers, with the query-api that reads it. */
interface Layout {
  readonly name: string;
  readonly api: QueryApi;
}

function readsOf(endMs: number): readonly Read[] {
  const endDate = new Date(endMs).toISOString();
  const days = { startDate: new Date(endMs - 30 * DAY_MS).toISOString(), endDate, interval: 'day' };
  const series = { path: '/events/series', parameters: days };
  return [
    { name: 'newest page', path: '/events', parameters: { total: 'none' }, bar: { atMost: 1.5 } },
    {
      name: 'newest page of a user',
      path: '/events',
      parameters: { total: 'none', userId: 'user-0' },
      bar: { atMost: 1.5 },
    },
    { name: 'properties of a user', path: '/users/user-0', parameters: {} },
    { ...series, name: 'count by day, 30 days', bar: { atMost: 1 } },
    { ...series, name: 'distinct users by day, 30 days', parameters: { ...days, measure: 'users', identity: 'raw' } },
    {
      ...series,
      name: 'count by day and a property, 30 days',
      parameters: { ...days, groupBy: 'properties.plan' },
    },
    { name: 'newest page with total', path: '/events', parameters: {}, bar: { atMost: 1.2 } },
  ];
}

async function measure({ rounds, events }: { rounds: number; events: number }): Promise<readonly Figure[]> {
  await using started = new AsyncDisposableStack();
  const folder = await mkdtemp(join(tmpdir(), 'sluice-bench-'));
  started.defer(() => rm(folder, { recursive: true, force: true }));
  const engines: BenchEngine[] = [];
  for (let n = 0; n < Math.max(...LAYOUTS); n += 1) engines.push(started.use(await BenchEngine.start(MEMORY_BYTES)));
  const [first] = engines;
  if (!first) throw new Error('there is no engine');

  const whole = await first.createDatabase('whole');
  const endMs = Date.now() - 60_000;
  await storeTraffic(whole, createTraffic(events, endMs, DAYS), events);
  await whole.expectExactly(events);
  const layouts: Layout[] = [
    { name: '1 server', api: started.use(await QueryApi.start(first.url, 'whole', WORKSPACE)) },
  ];
  for (const servers of LAYOUTS) {
    const path = join(folder, `servers-${servers}.json`);
    await split(first.native, engines.slice(0, servers), path);
    const api = await QueryApi.start(undefined, `of_${servers}`, WORKSPACE, {
      CLICKHOUSE_SERVERS_FILE: path,
      // Nothing is stored meanwhile, so what the servers have recorded grows old.
      READ_LAG_MS_MAX: '3600000',
      READ_STALE_MS_MAX: '3600000',
    });
    layouts.push({ name: `${servers} servers`, api: started.use(api) });
  }
  for (const engine of engines) {
    await engine.settleMerges();
    await engine.stopMerges();
  }

  const figures: Figure[] = [];
  for (const read of readsOf(endMs)) figures.push(...(await measureRead(layouts, read, rounds)));
  return figures;
}

/**
 * Splits what the database `whole` has over servers, by the uuid of each event, and writes their file. Entities are on all.
 *
 * @param source where the servers reach it
 */
async function split(source: string, engines: readonly BenchEngine[], path: string): Promise<void> {
  const count = engines.length;
  const name = `of_${count}`;
  const size = PARTITIONS / count;
  const entries: object[] = [];
  for (const [index, engine] of engines.entries()) {
    const database = await engine.createDatabase(name);
    for (const [table, condition] of Object.entries(SPLIT)) {
      const query = `INSERT INTO ${table} SELECT * FROM remote({source:String}, 'whole', '${table}') WHERE ${condition}`;
      await database.client.command({ query, query_params: { source, count, index, size, partitions: PARTITIONS } });
    }
    const partitions = `${index * size}-${(index + 1) * size - 1}`;
    await identify(database, `s${index}`, partitions);
    entries.push({ name: `s${index}`, url: engine.url, native: engine.native, database: name, partitions });
  }
  await writeFile(path, JSON.stringify({ servers: entries }));
}

/** An event is on the server of its partition. */
const SPLIT = {
  events: 'intDiv(CRC32(toString(uuid)) % {partitions:UInt8}, {size:UInt8}) = {index:UInt8}',
  entities: 'true',
  entity_properties: 'cityHash64(workspace_id, id) % {count:UInt8} = {index:UInt8}',
} as const;

/** Records what writers record: whose the database is, and that it has everything until now. */
async function identify({ client }: BenchDatabase, server: string, partitions: string): Promise<void> {
  await new OwnDatabase(client, { server, group: `sluice-writer.${server}`, partitions }).claim();
  const query = 'INSERT INTO storing_progress SELECT now64(3) AS at, at, max(_block_number) FROM events';
  await client.command({ query });
}

/** @throws {VoidRun} when a response is no success, or the layouts do not return the same */
async function measureRead(layouts: readonly Layout[], read: Read, rounds: number): Promise<Figure[]> {
  const times = new Map<string, number[]>(layouts.map(({ name }) => [name, []]));
  const ratios = new Map<string, number[]>(layouts.slice(1).map(({ name }) => [name, []]));
  // Round -1 warms up.
  for (let round = -1; round < rounds; round += 1) {
    const taken = new Map<string, number[]>(layouts.map(({ name }) => [name, []]));
    for (let turn = 0; turn < TURNS; turn += 1) {
      const bodies = new Set<string>();
      for (const { name, api } of layouts) {
        const { status, ms, body } = await api.get(read.path, read.parameters);
        if (status !== 200) throw new VoidRun(`${read.name} got ${status} ${JSON.stringify(body).slice(0, 300)}`);
        // A cursor names what the servers are.
        bodies.add(JSON.stringify({ ...body, nextCursor: null }));
        taken.get(name)?.push(ms);
      }
      if (bodies.size > 1) throw new VoidRun(`${read.name} differs between the layouts of servers`);
    }
    if (round < 0) continue;
    const one = median(taken.get('1 server') ?? []);
    for (const [name, turns] of taken) {
      times.get(name)?.push(median(turns));
      ratios.get(name)?.push(median(turns) / one);
    }
  }
  return [
    figureOf(read.name, '1 server', 'ms', times.get('1 server') ?? []),
    ...[...ratios].map(([name, values]) => figureOf(read.name, `${name} ÷ 1`, '', values, read.bar)),
  ];
}
