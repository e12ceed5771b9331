import type { ClickHouseClient } from '@sluice/shared/clickhouse/client';
import { ORDER_FIELDS } from '../services/query-api/src/events/event-columns.ts';
import { type BenchDatabase, type BenchEngine, startBenchEngine } from './engine.ts';
import { median } from './figures.ts';
import { type FilterQuery, filterQueries, NEWEST, queryDirectly, WORKSPACE } from './filter-queries.ts';
import { type PageResponse, type QueryApi, startQueryApi } from './query-api.ts';
import { createTraffic, type Traffic } from './traffic.ts';

const BATCH_ROWS = 50_000;

/** Events a second that are stored with the writer's code during some measurements. */
const STREAMED_ROWS = 5_000;

const DEPTH = 1_000_000;

const DASHBOARDS = 16;
const DASHBOARDS_MS = 15_000;

/**
 * Measures pages and totals of every filter among millions of events, compared with the newest page and with the same
 * SQL sent to ClickHouse directly: idle, while events are stored, and with cold caches.
 *
 * @param events how many are stored, with the writer's own statements
 * @returns whether all events are stored once
 */
export async function benchQuery(rounds: number, events: number): Promise<boolean> {
  await using engine = await startBenchEngine(12 * 1_024 ** 3);
  const database = await engine.database('query');
  const traffic = createTraffic(events, Date.now() - 60_000);
  await storeTraffic(database, traffic, events);
  await engine.resumeMerges();
  if (!(await database.verdict(events))) return false;
  await printDisk(database.client, events);

  await using api = await startQueryApi(engine.url, 'query', WORKSPACE);
  const queries = await filterQueries(database.client, WORKSPACE);
  console.log(`\nIdle, ${rounds} rounds`);
  console.table(await measure(api, database.client, queries, rounds));
  await printDepth(api, rounds);
  await printOrders(api);
  await printDashboards(api, queries);

  const streaming = startStreaming(database, traffic);
  console.log(`\nWhile ${STREAMED_ROWS} events a second are stored, ${rounds} rounds`);
  console.table(await measure(api, database.client, queries, rounds));
  const streamed = await streaming.stop();

  console.log('\nCold, the first response of each');
  console.table(await measureCold(api, engine, database.client, queries));
  return await database.verdict(events + streamed);
}

/** Stores events with the writer's own statements. */
export async function storeTraffic(database: BenchDatabase, traffic: Traffic, events: number): Promise<void> {
  const startedAt = performance.now();
  let batch = traffic.next(BATCH_ROWS);
  for (let stored = 0; stored < events; stored += BATCH_ROWS) {
    const storing = database.store(batch);
    // Meanwhile, the next batch is created.
    if (stored + BATCH_ROWS < events) batch = traffic.next(Math.min(BATCH_ROWS, events - stored - BATCH_ROWS));
    await storing;
    if (stored % 1_000_000 === 0 && stored > 0) console.error(`${stored.toLocaleString('en')} events are stored`);
  }
  const seconds = (performance.now() - startedAt) / 1_000;
  console.log(`${events.toLocaleString('en')} events stored in ${seconds.toFixed(0)} s`);
}

/** Measures each query in rounds, and the newest page before each. */
async function measure(
  api: QueryApi,
  client: ClickHouseClient,
  queries: readonly FilterQuery[],
  rounds: number,
): Promise<Record<string, Record<string, string>>> {
  const table: Record<string, Record<string, string>> = {};
  for (const query of [NEWEST, ...queries]) {
    const newest: number[] = [];
    const pages: number[] = [];
    const direct: number[] = [];
    const totals: number[] = [];
    let bytes = 0;
    let total: number | null = null;
    for (let round = -1; round < rounds; round += 1) {
      const first = await api.get('/events', { total: 'none' });
      const page = await api.get('/events', { ...query.parameters, total: 'none' });
      const same = await queryDirectly(client, query);
      const counted = await api.get('/events', { ...query.parameters, limit: '0' });
      // Round -1 warms up.
      if (round < 0) continue;
      newest.push(first.ms);
      pages.push(page.ms);
      direct.push(same.ms);
      totals.push(counted.ms);
      ({ bytes } = same);
      ({ total } = counted.body);
    }
    table[query.name] = {
      'page ms': `${ms(median(pages))} (${ms(p99(pages))})`,
      '× newest': (median(pages) / median(newest)).toFixed(2),
      'direct ms': `${ms(median(direct))} (${ms(p99(direct))})`,
      '÷ direct': `${(median(pages) / median(direct)).toFixed(2)} (${(p99(pages) / p99(direct)).toFixed(2)})`,
      'total ms': `${ms(median(totals))} (${ms(p99(totals))})`,
      '× newest page': (median(totals) / median(newest)).toFixed(2),
      total: total === null ? 'null' : total.toLocaleString('en'),
      'MB read': (bytes / 1e6).toFixed(1),
    };
  }
  return table;
}

/** Measures each query after emptying ClickHouse's caches, and the page cache if this process may. */
async function measureCold(
  api: QueryApi,
  engine: BenchEngine,
  client: ClickHouseClient,
  queries: readonly FilterQuery[],
): Promise<Record<string, Record<string, string>>> {
  const table: Record<string, Record<string, string>> = {};
  for (const query of [NEWEST, ...queries]) {
    const pages: number[] = [];
    for (let round = 0; round < 3; round += 1) {
      for (const cache of ['MARK', 'UNCOMPRESSED', 'INDEX MARK', 'INDEX UNCOMPRESSED', 'TEXT INDEX']) {
        const name = cache === 'TEXT INDEX' ? 'TEXT INDEX CACHES' : `${cache} CACHE`;
        await client.command({ query: `SYSTEM DROP ${name}` });
      }
      await engine.dropPageCache();
      pages.push((await api.get('/events', { ...query.parameters, total: 'none' })).ms);
    }
    table[query.name] = { 'page ms': `${ms(median(pages))} (${ms(Math.max(...pages))})` };
  }
  return table;
}

/** Stores a batch of events each second. */
function startStreaming(database: BenchDatabase, traffic: Traffic): { stop(): Promise<number> } {
  let stopped = false;
  let stored = 0;
  const running = (async () => {
    while (!stopped) {
      const startedAt = performance.now();
      await database.store(traffic.next(STREAMED_ROWS));
      stored += STREAMED_ROWS;
      const rest = 1_000 - (performance.now() - startedAt);
      await new Promise((resolve) => setTimeout(resolve, Math.max(0, rest)));
    }
  })();
  return {
    async stop() {
      stopped = true;
      await running;
      return stored;
    },
  };
}

async function printDepth(api: QueryApi, rounds: number): Promise<void> {
  const { body, ms: offsetMs } = await api.get('/events', { total: 'none', limit: '1', offset: String(DEPTH) });
  const first: number[] = [];
  const deep: number[] = [];
  for (let round = -1; round < rounds; round += 1) {
    const { ms: firstMs } = await api.get('/events', { total: 'none' });
    const { ms: deepMs } = await api.get('/events', { total: 'none', cursor: body.nextCursor ?? '' });
    if (round < 0) continue;
    first.push(firstMs);
    deep.push(deepMs);
  }
  const ratio = (median(deep) / median(first)).toFixed(2);
  console.log(
    `\nBy cursor at a depth of ${DEPTH.toLocaleString('en')}: ${ms(median(deep))} ms, ${ratio} of the first page`,
  );
  console.log(`By offset: ${ms(offsetMs)} ms`);
}

async function printOrders(api: QueryApi): Promise<void> {
  const table: Record<string, Record<string, string | number>> = {};
  for (const orderByField of ORDER_FIELDS) {
    const responses: PageResponse[] = [];
    for (let round = 0; round < 3; round += 1)
      responses.push(await api.get('/events', { total: 'none', orderByField }));
    table[orderByField] = {
      'page ms': ms(median(responses.map((response) => response.ms))),
      status: responses[0]?.status ?? 0,
    };
  }
  console.log('\nThe first page of every order');
  console.table(table);
}

/** Runs many dashboards at once, each with one query after the other. */
async function printDashboards(api: QueryApi, queries: readonly FilterQuery[]): Promise<void> {
  const times: number[] = [];
  const statuses = new Map<number, number>();
  const until = performance.now() + DASHBOARDS_MS;
  const dashboards = Array.from({ length: DASHBOARDS }, async (_, index) => {
    for (let turn = index; performance.now() < until; turn += 1) {
      const { parameters } = queries[turn % queries.length] ?? NEWEST;
      const response = await api.get('/events', { ...parameters, total: 'none' });
      times.push(response.ms);
      statuses.set(response.status, (statuses.get(response.status) ?? 0) + 1);
    }
  });
  await Promise.all(dashboards);
  console.log(`\n${DASHBOARDS} dashboards at once, pages of all these filters: ${times.length} pages,`);
  console.log(
    `median ${ms(median(times))} ms, p99 ${ms(p99(times))} ms, ${(p99(times) / median(times)).toFixed(1)} times the median; responses:`,
    Object.fromEntries(statuses),
  );
}

async function printDisk(client: ClickHouseClient, events: number): Promise<void> {
  const sizes = await client.query({
    query: `SELECT what, bytes FROM (
      SELECT concat('column ', column) AS what, sum(column_bytes_on_disk) AS bytes
      FROM system.parts_columns WHERE database = currentDatabase() AND table = 'events' AND active GROUP BY what
      UNION ALL
      SELECT concat('index ', name), data_compressed_bytes + marks_bytes FROM system.data_skipping_indices
      WHERE database = currentDatabase() AND table = 'events'
      UNION ALL
      SELECT 'all', sum(bytes_on_disk) FROM system.parts WHERE database = currentDatabase() AND table = 'events' AND active
      ) ORDER BY bytes DESC`,
    format: 'JSONEachRow',
  });
  const rows = await sizes.json<{ what: string; bytes: number }>();
  const lines = rows.map(({ what, bytes }) => [
    what,
    { MB: (bytes / 1e6).toFixed(1), 'bytes an event': (bytes / events).toFixed(1) },
  ]);
  console.log('\nOn disk');
  console.table(Object.fromEntries(lines));
}

function ms(value: number): string {
  return value.toFixed(1);
}

/** The 99th percentile; with fewer than a hundred values it is the greatest. */
function p99(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.ceil(values.length * 0.99) - 1] ?? Number.NaN;
}
