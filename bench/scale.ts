import { Agent } from 'node:http';
import type { ClickHouseClient } from '@sluice/shared/clickhouse/client';
import { type BenchEngine, startBenchEngine } from './engine.ts';
import { filterQueries, readRows, WORKSPACE } from './filter-queries.ts';
import {
  CHEAP_REQUESTS,
  type MeasuredRequest,
  measure,
  page,
  type RequestCost,
  selectOne,
} from './measured-requests.ts';
import { type QueryApi, startQueryApi } from './query-api.ts';
import { fillDatabases, mergeMonths } from './scale-data.ts';
import { createTraffic } from './traffic.ts';

/** The workspace with one in a hundred of the events. */
const SMALL_TENANT = 'hooli';

/** How many events are stored in batches of each size, and what one may cost, in microseconds. */
const INSERTS = [
  { rows: 50_000, events: 500_000, mostUs: 9 },
  { rows: 5_000, events: 200_000, mostUs: 15 },
  { rows: 1_000, events: 60_000, mostUs: 45 },
] as const;

/** A cost divided by another one, and the most that it should be. */
interface Bar {
  readonly what: string;
  readonly ratio: number;
  readonly most: number;
}

/**
 * Measures requests among events of 36 months in more than a hundred parts, a million past deletions and two million
 * users, and storing batches of three sizes, and compares them with their bars. All requests of a comparison are
 * measured in turn.
 *
 * @param events how many are stored in the large database
 * @returns whether all events are stored once
 */
export async function benchScale(rounds: number, events: number): Promise<boolean> {
  await using engine = await startBenchEngine(12 * 1_024 ** 3);
  const bars: Bar[] = [];
  await measureInserts(engine, bars);

  const { large, expected } = await fillDatabases(engine, events);
  await using api = await startQueryApi(engine.url, 'large', WORKSPACE);
  await using tenantApi = await startQueryApi(engine.url, 'large', SMALL_TENANT);
  await using smallApi = await startQueryApi(engine.url, 'small', WORKSPACE);
  await using deletedApi = await startQueryApi(engine.url, 'deleted', WORKSPACE);
  const apis = { api, tenantApi, smallApi, deletedApi };

  await measureRequests(engine, rounds, bars, apis, large.client, 'just stored');
  const sound = await large.verdict(expected);
  await engine.resumeMerges();
  await mergeMonths(large.client);
  await engine.stopMerges();
  await measureRequests(engine, rounds, bars, apis, large.client, 'months merged');
  printBars(bars);
  return sound;
}

/** @param state of the database `large`; bars and tables name it */
async function measureRequests(
  engine: BenchEngine,
  rounds: number,
  bars: Bar[],
  apis: PageApis,
  client: ClickHouseClient,
  state: string,
): Promise<void> {
  const { api, tenantApi } = apis;
  console.log(`\n${state}`);
  await printParts(client);
  const found: Bar[] = [{ what: 'bytes of indexes ÷ bytes of columns', ratio: await indexShare(client), most: 0.4 }];
  await measurePages(engine, rounds, found, apis);
  await measureFilters(engine, rounds, found, api, client, WORKSPACE, 'large tenant');
  await measureFilters(engine, rounds, found, tenantApi, client, SMALL_TENANT, 'small tenant');
  bars.push(...found.map((bar) => ({ ...bar, what: `${state}: ${bar.what}` })));
}

async function measureInserts(engine: BenchEngine, bars: Bar[]): Promise<void> {
  const table: Record<string, Record<string, string>> = {};
  for (const { rows, events, mostUs } of INSERTS) {
    const database = await engine.database(`inserts_${rows}`);
    const traffic = createTraffic(events, Date.now() - 60_000, 1);
    const { cpuUs } = await engine.measure(async () => {
      for (let stored = 0; stored < events; stored += rows) await database.store(traffic.next(rows));
      await engine.settleMerges();
    });
    const share = await indexShare(database.client);
    const what = `storing batches of ${rows.toLocaleString('en')}, with merges: CPU µs an event`;
    bars.push({ what, ratio: cpuUs / events, most: mostUs });
    table[what] = { 'CPU µs an event': (cpuUs / events).toFixed(1), 'indexes ÷ columns': share.toFixed(2) };
  }
  console.table(table);
}

interface PageApis {
  readonly api: QueryApi;
  readonly tenantApi: QueryApi;
  readonly smallApi: QueryApi;
  readonly deletedApi: QueryApi;
}

async function measurePages(
  engine: BenchEngine,
  rounds: number,
  bars: Bar[],
  { api, smallApi, deletedApi }: PageApis,
): Promise<void> {
  const { body } = await api.get('/events', { total: 'none', limit: '1', offset: '1000000' });
  const agent = new Agent({ keepAlive: true });
  const one: MeasuredRequest = {
    name: 'SELECT 1, plain HTTP',
    requests: CHEAP_REQUESTS,
    run: () => selectOne(engine.url, agent),
  };
  const costs = await measure(engine, rounds, [
    one,
    page('newest page', api, { total: 'none' }),
    page('newest page, small database', smallApi, { total: 'none' }),
    page('newest page with total', api, {}),
    page('newest page with total, small database', smallApi, {}),
    page('newest page, a million deletions', deletedApi, { total: 'none' }),
    page('by cursor, a million deep', api, { total: 'none', cursor: body.nextCursor ?? '' }),
    page('users with a common property', api, { 'properties.plan': 'team' }, '/users'),
    page('users with a property of 100', api, { 'properties.team': 'team-77' }, '/users'),
    page('users with a property of one', api, { 'properties.email': '77777@example.com' }, '/users'),
    page('users with a property of none', api, { 'properties.email': 'nobody' }, '/users'),
  ]);
  agent.destroy();
  const cpu = (name: string, other: string) => (costs.get(name)?.cpuMs ?? 0) / (costs.get(other)?.cpuMs ?? 0);
  const ms = (name: string, other: string) => (costs.get(name)?.ms ?? 0) / (costs.get(other)?.ms ?? 0);
  for (const [unit, ratio] of [
    ['CPU', cpu],
    ['time', ms],
  ] as const) {
    const bar = (name: string, other: string, most: number) =>
      bars.push({ what: `${name} ÷ ${other}, ${unit}`, ratio: ratio(name, other), most });
    bar('newest page with total', 'newest page with total, small database', 1.3);
    bar('newest page', 'newest page, small database', 1.3);
    bar('newest page', 'SELECT 1, plain HTTP', 6);
    bar('newest page, a million deletions', 'newest page, small database', 1.05);
    bar('by cursor, a million deep', 'newest page', 1.2);
    for (const name of costs.keys()) if (name.startsWith('users')) bar(name, 'newest page', 3);
  }
}

async function measureFilters(
  engine: BenchEngine,
  rounds: number,
  bars: Bar[],
  api: QueryApi,
  client: ClickHouseClient,
  workspace: string,
  tenant: string,
): Promise<void> {
  console.log(`\n${tenant}`);
  const queries = await filterQueries(client, workspace);
  const requests = queries.flatMap(({ name, parameters }) => [
    page(name, api, { ...parameters, total: 'none' }),
    page(`${name}, with total`, api, parameters),
  ]);
  const newest = 'newest page';
  const costs = await measure(engine, rounds, [page(newest, api, { total: 'none' }), ...requests]);
  const of = (name: string): RequestCost =>
    costs.get(name) ?? { firstMs: Number.NaN, ms: Number.NaN, cpuMs: Number.NaN };
  for (const { name } of queries) {
    const [alone, counted] = [of(name), of(`${name}, with total`)];
    const what = `${tenant}, ${name}`;
    bars.push({ what: `${what} ÷ newest page, CPU`, ratio: alone.cpuMs / of(newest).cpuMs, most: 2 });
    bars.push({
      what: `${what}, with total ÷ without, first record`,
      ratio: counted.firstMs / alone.firstMs,
      most: 1.5,
    });
    bars.push({ what: `${what}, with total ÷ without, in all`, ratio: counted.ms / alone.ms, most: 2.5 });
  }
}

async function printParts(client: ClickHouseClient): Promise<void> {
  const query = `SELECT count() AS parts, uniqExact(partition) AS partitions, sum(rows) AS rows FROM system.parts
    WHERE database = currentDatabase() AND table = 'events' AND active`;
  const [found] = await readRows<Record<string, number>>(client, query);
  console.log(`${found?.['rows']} events in ${found?.['parts']} parts of ${found?.['partitions']} partitions`);
}

/** Bytes of indexes divided by bytes of columns. */
async function indexShare(client: ClickHouseClient): Promise<number> {
  const query = `SELECT sum(secondary_indices_compressed_bytes + secondary_indices_marks_bytes) / sum(data_compressed_bytes) AS ratio
    FROM system.parts WHERE database = currentDatabase() AND table = 'events' AND active`;
  const [found] = await readRows<{ ratio: number }>(client, query);
  return found?.ratio ?? Number.NaN;
}

function printBars(bars: readonly Bar[]): void {
  const lines = bars.map(({ what, ratio, most }) => [
    what,
    { measured: ratio.toFixed(2), bar: most, verdict: ratio <= most ? 'met' : 'MISSED' },
  ]);
  console.log('\nBars');
  console.table(Object.fromEntries(lines));
}
