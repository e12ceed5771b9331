import type { ClickHouseClient } from '@sluice/shared/clickhouse/client';
import { querySettings } from '../services/query-api/src/clickhouse/query-settings.ts';
import { startBenchEngine } from './engine.ts';
import { median } from './figures.ts';
import { CONFIG, WORKSPACE } from './filter-queries.ts';
import { storeTraffic } from './query.ts';
import { type QueryApi, startQueryApi } from './query-api.ts';
import { addUsers, mergeMonths } from './scale-data.ts';
import { createTraffic, WORKSPACES } from './traffic.ts';

const DAY_MS = 86_400_000;
const DAYS = 1_080;

/** The workspace with the second most events: its reports run while pages of the first one are measured. */
const NEIGHBOUR = WORKSPACES[1];
const NEIGHBOURS = 4;

/** What a read may take: a multiple of the newest page, or of the same SQL by hand, or milliseconds. */
interface Bars {
  readonly newest?: number;
  readonly byHand?: number;
  readonly ms?: number;
}

interface Read {
  readonly name: string;
  readonly path: string;
  readonly parameters: Readonly<Record<string, string>>;
  readonly bars: Bars;
  /** The same without query-api, written by hand: it binds `workspace`, `start` and `end`. */
  readonly byHand?: string;
}

const BY_PLAN = `
  SELECT toStartOfDay(timestamp, 'UTC') AS day, JSONExtractString(properties, 'plan') AS plan, count()
  FROM events
  WHERE workspace_id = {workspace:String}
    AND timestamp BETWEEN fromUnixTimestamp64Milli({start:Int64}) AND fromUnixTimestamp64Milli({end:Int64})
  GROUP BY day, plan ORDER BY day, plan`;

/** The reads of a dashboard, over the last 30 days where it says so, else over everything. */
function readsOf(endMs: number): readonly Read[] {
  const endDate = new Date(endMs).toISOString();
  const month = { startDate: new Date(endMs - 30 * DAY_MS).toISOString(), endDate };
  const all = { startDate: '2000-01-01', endDate };
  const series = { path: '/events/series' };
  return [
    { ...series, name: 'count by day, 30 days', parameters: { ...month, interval: 'day' }, bars: { newest: 3 } },
    {
      ...series,
      name: 'count by month and event, everything',
      parameters: { ...all, interval: 'month', groupBy: 'event' },
      bars: { newest: 5 },
    },
    {
      ...series,
      name: 'count by day and a property, 30 days',
      parameters: { ...month, interval: 'day', groupBy: 'properties.plan' },
      bars: { byHand: 1.2, ms: 300 },
      byHand: BY_PLAN,
    },
    {
      ...series,
      name: 'distinct users by day, 30 days',
      parameters: { ...month, interval: 'day', measure: 'users' },
      bars: { ms: 300 },
    },
    { name: 'names', path: '/events/names', parameters: {}, bars: { newest: 3 } },
    {
      name: 'users by a property that 100 have',
      path: '/users',
      parameters: { 'properties.team': 'team-7' },
      bars: { newest: 3 },
    },
    {
      name: 'users by a property that one has',
      path: '/users',
      parameters: { 'properties.email': '1234567@example.com' },
      bars: { newest: 3 },
    },
    { name: 'properties', path: '/events/properties', parameters: {}, bars: {} },
    { name: 'values', path: '/events/values', parameters: { property: 'properties.plan' }, bars: {} },
    {
      name: 'funnel of three steps, 30 days',
      path: '/events/funnel',
      parameters: { ...month, steps: 'page_viewed,search_performed,report_opened' },
      bars: {},
    },
    {
      name: 'retention by day, 30 days',
      path: '/events/retention',
      parameters: { ...month, interval: 'day', periods: '30' },
      bars: {},
    },
    { name: 'activity of a user with many events', path: '/users/user-0/activity', parameters: {}, bars: {} },
  ];
}

/**
 * Measures the reads of dashboards among events of 36 months and two million users, each in turn with the newest page,
 * and pages while another workspace runs reports.
 *
 * @param events how many are stored, with the writer's own statements
 * @returns whether all events are stored once, and all bars are met
 */
export async function benchDashboards(rounds: number, events: number): Promise<boolean> {
  await using engine = await startBenchEngine(12 * 1_024 ** 3);
  const database = await engine.database('dashboards');
  const endMs = Date.now() - 60_000;
  await storeTraffic(database, createTraffic(events, endMs, DAYS), events);
  await addUsers(database.client);
  await mergeMonths(database.client);
  await engine.settleMerges();
  if (!(await database.verdict(events))) return false;

  await using api = await startQueryApi(engine.url, 'dashboards', WORKSPACE);
  const table: Record<string, Record<string, string>> = {};
  let met = true;
  for (const read of readsOf(endMs)) {
    const measured = await measure(api, database.client, read, rounds, endMs);
    const verdict = verdictOf(read.bars, measured);
    met &&= verdict !== 'MISSED';
    table[read.name] = {
      ms: measured.ms.toFixed(1),
      '× newest page': (measured.ms / measured.newestMs).toFixed(2),
      '÷ by hand': measured.byHandMs === undefined ? '' : (measured.ms / measured.byHandMs).toFixed(2),
      bar: Object.entries(read.bars)
        .map(([name, most]) => `${name} ${most}`)
        .join(', '),
      verdict,
    };
  }
  console.log(`\nThe reads of a dashboard, medians of ${rounds}`);
  console.table(table);

  await using neighbour = await startQueryApi(engine.url, 'dashboards', NEIGHBOUR);
  await printBesideReports(api, neighbour, rounds, endMs);
  return met;
}

interface Measured {
  readonly ms: number;
  readonly newestMs: number;
  readonly byHandMs: number | undefined;
}

/** @throws when a response is no success, or is not complete: then its time says nothing */
async function measure(
  api: QueryApi,
  client: ClickHouseClient,
  { name, path, parameters, byHand }: Read,
  rounds: number,
  endMs: number,
): Promise<Measured> {
  const newest: number[] = [];
  const read: number[] = [];
  const direct: number[] = [];
  for (let round = -1; round < rounds; round += 1) {
    const page = await api.get('/events', { total: 'none' });
    const response = await api.get(path, parameters);
    if (response.status !== 200 || (response.body as { complete?: boolean }).complete === false) {
      throw new Error(`VOID: ${name} is answered ${response.status} ${JSON.stringify(response.body).slice(0, 300)}`);
    }
    const directMs = byHand === undefined ? undefined : await queryByHand(client, byHand, endMs);
    // Round -1 warms up.
    if (round < 0) continue;
    newest.push(page.ms);
    read.push(response.ms);
    if (directMs !== undefined) direct.push(directMs);
  }
  return { ms: median(read), newestMs: median(newest), byHandMs: direct.length === 0 ? undefined : median(direct) };
}

async function queryByHand(client: ClickHouseClient, query: string, endMs: number): Promise<number> {
  const startedAt = performance.now();
  const result = await client.query({
    query,
    query_params: { workspace: WORKSPACE, start: endMs - 30 * DAY_MS, end: endMs },
    format: 'JSONCompactEachRow',
    clickhouse_settings: { ...querySettings(CONFIG), optimize_aggregation_in_order: 0 },
  });
  await result.text();
  return performance.now() - startedAt;
}

function verdictOf({ newest, byHand, ms }: Bars, measured: Measured): string {
  const most = [
    ...(newest === undefined ? [] : [newest * measured.newestMs]),
    ...(byHand === undefined ? [] : [byHand * (measured.byHandMs ?? 0)]),
    ...(ms === undefined ? [] : [ms]),
  ];
  if (most.length === 0) return '';
  return measured.ms <= Math.min(...most) ? 'met' : 'MISSED';
}

/** Measures the newest page of one workspace alone, and while another one runs expensive series all the time. */
async function printBesideReports(api: QueryApi, neighbour: QueryApi, rounds: number, endMs: number): Promise<void> {
  const pages = async () => {
    const times: number[] = [];
    for (let round = 0; round < 10 * rounds; round += 1) times.push((await api.get('/events', { total: 'none' })).ms);
    return times;
  };
  const alone = await pages();
  let stopped = false;
  const parameters = {
    startDate: '2000-01-01',
    endDate: new Date(endMs).toISOString(),
    groupBy: 'properties.plan',
    measure: 'users',
  };
  const reports = Array.from({ length: NEIGHBOURS }, async () => {
    while (!stopped) await neighbour.get('/events/series', { ...parameters, interval: 'month' });
  });
  const beside = await pages();
  stopped = true;
  await Promise.all(reports);
  console.log(
    `\nThe newest page alone: median ${median(alone).toFixed(1)} ms; while another workspace runs expensive series: ` +
      `${median(beside).toFixed(1)} ms, ${(median(beside) / median(alone)).toFixed(1)} times as long`,
  );
}
