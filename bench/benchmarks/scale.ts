import { Agent } from 'node:http';
import { DEPTH, type FilterQuery, filterQueries, MATCHES, requireDepth, WORKSPACE } from '../data/filter-queries.ts';
import { fillDatabases } from '../data/scale-data.ts';
import { createTraffic, WORKSPACES } from '../data/traffic.ts';
import { measureRequests, page, type RequestCost, selectOne } from '../measure/measured-requests.ts';
import type { BenchDatabase } from '../processes/database.ts';
import { BenchEngine } from '../processes/engine.ts';
import { QueryApi } from '../processes/query-api.ts';
import { type Bar, type Benchmark, type Figure, figureOf } from '../report/benchmark.ts';

/** The workspace with one in a hundred of the events. */
const SMALL_TENANT = WORKSPACES[4];

/** How many events are stored in batches of each size, and what one may cost, in microseconds. */
const INSERTS = [
  { rows: 50_000, events: 500_000, bar: { atMost: 9 } },
  { rows: 5_000, events: 100_000, bar: { atMost: 15 } },
  { rows: 1_000, events: 30_000, bar: { atMost: 45 } },
] as const;

const JUST_STORED = 'just stored';
const MERGED = 'months merged';

export const SCALE: Benchmark<{ rounds: number; events: number }> = {
  name: 'scale',
  title: 'Many months, many parts',
  method:
    'Product traffic of 36 months, some of it scattered over all of them, and two million users: as it is just after it was stored, and ' +
    'when each month has become one part. Compared in turn: a database of a million events of one month, the same with a million past ' +
    'deletions, and `SELECT 1` by plain HTTP. CPU is that of ClickHouse and query-api. The large tenant has seven in ten events, the ' +
    'small one a hundredth. Of all one-filter pages whose values match many (one in 500 or more), few (160 or fewer) or no events, the ' +
    'worst is shown.',
  size: { rounds: 3, events: 2_000_000 },
  measure,
};

interface Apis {
  readonly large: QueryApi;
  readonly smallTenant: QueryApi;
  readonly small: QueryApi;
  readonly deleted: QueryApi;
}

async function measure({ rounds, events }: { rounds: number; events: number }): Promise<readonly Figure[]> {
  requireDepth(events);
  await using engine = await BenchEngine.start(12 * 1_024 ** 3);
  const figures = await measureInserts(engine);
  const { large, expected } = await fillDatabases(engine, events);
  await using api = await QueryApi.start(engine.url, 'large', WORKSPACE);
  await using smallTenant = await QueryApi.start(engine.url, 'large', SMALL_TENANT);
  await using small = await QueryApi.start(engine.url, 'small', WORKSPACE);
  await using deleted = await QueryApi.start(engine.url, 'deleted', WORKSPACE);
  const apis = { large: api, smallTenant, small, deleted };

  figures.push(...(await measureState(engine, rounds, apis, large, JUST_STORED)));
  await large.expectExactly(expected);
  await engine.resumeMerges();
  await large.mergeMonths();
  await engine.stopMerges();
  figures.push(...(await measureState(engine, rounds, apis, large, MERGED)));
  return figures;
}

async function measureInserts(engine: BenchEngine): Promise<Figure[]> {
  const figures: Figure[] = [];
  for (const { rows, events, bar } of INSERTS) {
    const database = await engine.createDatabase(`inserts_${rows}`);
    const traffic = createTraffic(events, Date.now() - 60_000, 1);
    const { cpuUs } = await engine.measure(async () => {
      for (let stored = 0; stored < events; stored += rows) await database.store(traffic.next(rows));
      await engine.settleMerges();
    });
    const row = `storing batches of ${rows.toLocaleString('en')}, with merges: CPU of ClickHouse an event`;
    figures.push(figureOf(row, JUST_STORED, 'µs', [cpuUs / events], bar));
  }
  return figures;
}

/** @param state the column of the figures */
async function measureState(
  engine: BenchEngine,
  rounds: number,
  apis: Apis,
  large: BenchDatabase,
  state: string,
): Promise<Figure[]> {
  return [
    ...(await measureDisk(large, state)),
    ...(await measurePages(engine, rounds, apis, state)),
    ...(await measureFilters(engine, rounds, apis.large, large, WORKSPACE, state)),
    ...(await measureFilters(engine, rounds, apis.smallTenant, large, SMALL_TENANT, state)),
  ];
}

async function measureDisk(database: BenchDatabase, state: string): Promise<Figure[]> {
  const [found] = await database.read<{ parts: number; columns: number; indexes: number }>(
    `SELECT count() AS parts, sum(data_compressed_bytes) / sum(rows) AS columns,
       sum(secondary_indices_compressed_bytes + secondary_indices_marks_bytes) / sum(rows) AS indexes
     FROM system.parts WHERE database = currentDatabase() AND table = 'events' AND active`,
  );
  const { parts, columns, indexes } = found ?? { parts: Number.NaN, columns: Number.NaN, indexes: Number.NaN };
  return [
    figureOf('parts', state, '', [parts]),
    figureOf('columns on disk, an event', state, 'bytes', [columns]),
    figureOf('indexes on disk, an event', state, 'bytes', [indexes]),
    figureOf('bytes of indexes ÷ bytes of columns', state, '', [indexes / columns], { atMost: 0.4 }),
  ];
}

async function measurePages(
  engine: BenchEngine,
  rounds: number,
  { large, small, deleted }: Apis,
  state: string,
): Promise<Figure[]> {
  const { body } = await large.get('/events', { total: 'none', limit: '1', offset: String(DEPTH) });
  const agent = new Agent({ keepAlive: true });
  const users = {
    'users by a property of a quarter': { 'properties.plan': 'team' },
    'users by a property of 100': { 'properties.team': 'team-77' },
    'users by a property of one': { 'properties.email': '77777@example.com' },
    'users by a property of none': { 'properties.email': 'nobody' },
  };
  const costOf = await measureRequests(engine, rounds, [
    selectOne('`SELECT 1`', engine.url, agent),
    page('newest page', large, { total: 'none' }),
    page('the same of a small database', small, { total: 'none' }),
    page('newest page with total', large, {}),
    page('the same of a small database, with total', small, {}),
    page('newest page of a small database with a million deletions', deleted, { total: 'none' }),
    page('page a million deep, by cursor', large, { total: 'none', cursor: body.nextCursor ?? '' }),
    ...Object.entries(users).map(([name, parameters]) => page(name, large, parameters, '/users')),
  ]);
  agent.destroy();
  const ratio = (unit: 'cpuMs' | 'ms', name: string, other: string, atMost?: number): Figure => {
    const row = `${name} ÷ ${other}, ${unit === 'ms' ? 'time' : 'CPU'}`;
    const bar = atMost === undefined ? undefined : { atMost };
    return figureOf(row, state, '', [costOf(name)[unit] / costOf(other)[unit]], bar);
  };
  const both = (name: string, other: string, atMost: number) => [
    ratio('cpuMs', name, other, atMost),
    ratio('ms', name, other, atMost),
  ];
  return [
    figureOf('newest page', state, 'ms', [costOf('newest page').ms]),
    ratio('ms', 'newest page', '`SELECT 1`', 6),
    ...both('newest page', 'the same of a small database', 1.3),
    ...both('newest page with total', 'the same of a small database, with total', 1.3),
    ...both('newest page of a small database with a million deletions', 'the same of a small database', 1.05),
    ...both('page a million deep, by cursor', 'newest page', 1.2),
    ...Object.keys(users).map((name) => ratio('cpuMs', name, 'newest page', 3)),
  ];
}

async function measureFilters(
  engine: BenchEngine,
  rounds: number,
  api: QueryApi,
  database: BenchDatabase,
  workspace: string,
  state: string,
): Promise<Figure[]> {
  const queries = await filterQueries(database, workspace);
  const counted = (name: string) => `${name}, with total`;
  const costOf = await measureRequests(engine, rounds, [
    page('newest page', api, { total: 'none' }),
    ...queries.flatMap(({ name, parameters }) => [
      page(name, api, { ...parameters, total: 'none' }),
      page(counted(name), api, parameters),
    ]),
  ]);
  const tenant = workspace === SMALL_TENANT ? 'small tenant' : 'large tenant';
  const ratios: Readonly<Record<string, { ratioOf: (name: string) => number; bar: Bar }>> = {
    '÷ newest page, CPU': { ratioOf: (name) => costOf(name).cpuMs / costOf('newest page').cpuMs, bar: { atMost: 2 } },
    'with total ÷ without, first record': {
      ratioOf: (name) => quotient(costOf(counted(name)), costOf(name), 'firstMs'),
      bar: { atMost: 1.5 },
    },
    'with total ÷ without, in all': {
      ratioOf: (name) => quotient(costOf(counted(name)), costOf(name), 'ms'),
      bar: { atMost: 2.5 },
    },
  };
  return Object.entries(ratios).flatMap(([name, { ratioOf, bar }]) =>
    MATCHES.map((matches) => {
      const found = queries.filter((query: FilterQuery) => query.matches === matches);
      return worstOf(
        `${tenant}, filter that matches ${matches}, ${name}`,
        state,
        found.map((query) => ratioOf(query.name)),
        bar,
      );
    }),
  );
}

function quotient(over: RequestCost, under: RequestCost, key: keyof RequestCost): number {
  return over[key] / under[key];
}

function worstOf(row: string, column: string, values: readonly number[], bar: Bar): Figure {
  const highest = Math.max(...values);
  return { row, column, unit: '', value: highest, lowest: Math.min(...values), highest, bar };
}
