import { ORDER_FIELDS } from '../../services/query-api/src/records/events/event-columns.ts';
import { DEPTH, type FilterQuery, filterQueries, NEWEST, requireDepth, WORKSPACE } from '../data/filter-queries.ts';
import { storeTraffic, TrafficStream } from '../data/store-traffic.ts';
import { createTraffic } from '../data/traffic.ts';
import { queryPageDirectly } from '../measure/direct-queries.ts';
import type { BenchDatabase } from '../processes/database.ts';
import { BenchEngine } from '../processes/engine.ts';
import { QueryApi } from '../processes/query-api.ts';
import { type Benchmark, type Figure, figureOf, median, VoidRun } from '../report/benchmark.ts';

const FEW_ROUNDS = 3;

const DASHBOARDS = 16;
const DASHBOARDS_MS = 15_000;

const PAGE_BAR = { atMost: 2.5 };
const DIRECT_BAR = { atMost: 1.15 };
const TOTAL_BAR = { atMost: 5 };
const DEPTH_BAR = { atMost: 1.2 };

export const QUERY: Benchmark<{ rounds: number; events: number }> = {
  name: 'query',
  title: 'Pages and totals of events',
  method:
    'Product traffic of 90 days (users, organizations and event names by the law of Zipf, bursts, 1 % late by up to 30 days, 800 bytes an ' +
    "event), stored with the writer's own statements. Seven in ten events belong to the workspace that is queried. Each page and total is " +
    'measured in turn with the newest page, and with the same SQL sent to ClickHouse directly, whose slowest round is compared. A filter has ' +
    'its name and how many events it matches. A total that takes more than a second is `null`, and has no figure. Then the same pages ' +
    'while 5,000 events a second are stored, and with cold caches. The bars are those of 10 million events.',
  size: { rounds: 7, events: 3_000_000 },
  measure,
};

async function measure({ rounds, events }: { rounds: number; events: number }): Promise<readonly Figure[]> {
  requireDepth(events);
  await using engine = await BenchEngine.start(12 * 1_024 ** 3);
  const database = await engine.createDatabase('query');
  const traffic = createTraffic(events, Date.now() - 60_000);
  await storeTraffic(database, traffic, events);
  await engine.resumeMerges();
  await database.expectExactly(events);

  await using api = await QueryApi.start(engine.url, 'query', WORKSPACE);
  const queries = [NEWEST, ...(await filterQueries(database, WORKSPACE))];
  const figures: Figure[] = [];
  for (const query of queries) figures.push(...(await measureIdle(api, database, query, rounds)));
  const stream = new TrafficStream(database, traffic);
  for (const query of queries) figures.push(await measureWhileStoring(api, query, rounds));
  const streamed = await stream.stop();
  await database.expectExactly(events + streamed);
  for (const query of queries) figures.push(await measureCold(api, engine, query));
  figures.push(...(await measureDepth(api, rounds)), ...(await measureOrders(api)));
  figures.push(...(await measureDashboards(api, queries)));
  return figures;
}

async function measureIdle(
  api: QueryApi,
  database: BenchDatabase,
  query: FilterQuery,
  rounds: number,
): Promise<Figure[]> {
  const newest: number[] = [];
  const pages: number[] = [];
  const direct: number[] = [];
  const totals: number[] = [];
  let total: number | null = null;
  for (let round = -1; round < rounds; round += 1) {
    const first = await api.newestPage();
    const page = await api.get('/events', { ...query.parameters, total: 'none' });
    const directMs = await queryPageDirectly(database.client, query);
    const counted = await api.get('/events', { ...query.parameters, limit: '0' });
    // Round -1 warms up.
    if (round < 0) continue;
    newest.push(first.ms);
    pages.push(page.ms);
    direct.push(directMs);
    totals.push(counted.ms);
    ({ total } = counted.body);
  }
  const ratios = (values: readonly number[]) => [median(values) / median(newest)];
  const slowestRatio = Math.max(...pages) / Math.max(...direct);
  const figures = [
    figureOf(query.name, 'page', 'ms', pages),
    ...(query === NEWEST ? [] : [figureOf(query.name, '÷ newest page', '', ratios(pages), PAGE_BAR)]),
    figureOf(query.name, 'slowest ÷ the same SQL', '', [slowestRatio], DIRECT_BAR),
  ];
  if (total === null) return figures;
  return [
    ...figures,
    figureOf(query.name, 'total', 'ms', totals),
    figureOf(query.name, 'total ÷ newest page', '', ratios(totals), TOTAL_BAR),
  ];
}

/** Measures the page in turn with the newest page of that moment. */
async function measureWhileStoring(api: QueryApi, { name, parameters }: FilterQuery, rounds: number): Promise<Figure> {
  const ratios: number[] = [];
  for (let round = 0; round < rounds; round += 1) {
    const newest = await api.newestPage();
    const page = await api.get('/events', { ...parameters, total: 'none' });
    ratios.push(page.ms / newest.ms);
  }
  return figureOf(name, 'while storing, ÷ newest page', '', ratios);
}

async function measureCold(api: QueryApi, engine: BenchEngine, { name, parameters }: FilterQuery): Promise<Figure> {
  const pages: number[] = [];
  for (let round = 0; round < FEW_ROUNDS; round += 1) {
    await engine.dropCaches();
    pages.push((await api.get('/events', { ...parameters, total: 'none' })).ms);
  }
  return figureOf(name, 'page, cold', 'ms', pages);
}

async function measureDepth(api: QueryApi, rounds: number): Promise<Figure[]> {
  const skipped = await api.get('/events', { total: 'none', limit: '1', offset: String(DEPTH) });
  const cursor = skipped.body.nextCursor ?? '';
  const deep: number[] = [];
  const ratios: number[] = [];
  for (let round = -1; round < rounds; round += 1) {
    const first = await api.newestPage();
    const page = await api.get('/events', { total: 'none', cursor });
    // Round -1 warms up.
    if (round < 0) continue;
    deep.push(page.ms);
    ratios.push(page.ms / first.ms);
  }
  const name = 'a million deep, by cursor';
  return [
    figureOf(name, 'page', 'ms', deep),
    figureOf(name, '÷ newest page', '', ratios, DEPTH_BAR),
    figureOf('a million deep, by offset', 'page', 'ms', [skipped.ms]),
  ];
}

async function measureOrders(api: QueryApi): Promise<Figure[]> {
  const figures: Figure[] = [];
  for (const orderByField of ORDER_FIELDS) {
    const pages: number[] = [];
    for (let round = 0; round < FEW_ROUNDS; round += 1) {
      const { status, ms } = await api.get('/events', { total: 'none', orderByField });
      if (status !== 200) throw new VoidRun(`a page by ${orderByField} got ${status}`);
      pages.push(ms);
    }
    figures.push(figureOf(`in the order of \`${orderByField}\``, 'page', 'ms', pages));
  }
  return figures;
}

/** Runs many dashboards at once, each with one query after the other. */
async function measureDashboards(api: QueryApi, queries: readonly FilterQuery[]): Promise<Figure[]> {
  const times: number[] = [];
  const until = performance.now() + DASHBOARDS_MS;
  const dashboards = Array.from({ length: DASHBOARDS }, async (_, index) => {
    for (let turn = index; performance.now() < until; turn += 1) {
      const { parameters } = queries[turn % queries.length] ?? NEWEST;
      const { status, ms } = await api.get('/events', { ...parameters, total: 'none' });
      if (status !== 200) throw new VoidRun(`a page of a dashboard got ${status}`);
      times.push(ms);
    }
  });
  await Promise.all(dashboards);
  return [figureOf(`${DASHBOARDS} dashboards at once, all of these filters`, 'page', 'ms', times)];
}
