import { WORKSPACE } from '../data/filter-queries.ts';
import { storeTraffic } from '../data/store-traffic.ts';
import { createTraffic, DAY_MS, LONG_DAYS, WORKSPACES } from '../data/traffic.ts';
import { addUsers } from '../data/users.ts';
import { queryByHand } from '../measure/direct-queries.ts';
import type { BenchDatabase } from '../processes/database.ts';
import { BenchEngine } from '../processes/engine.ts';
import { QueryApi } from '../processes/query-api.ts';
import { type Bar, type Benchmark, type Figure, figureOf, median, VoidRun } from '../report/benchmark.ts';

/** The workspace with the second most events: its reports run while pages of the first one are measured. */
const NEIGHBOUR = WORKSPACES[1];
const NEIGHBOURS = 4;

export const DASHBOARDS: Benchmark<{ rounds: number; events: number }> = {
  name: 'dashboards',
  title: 'The reads of dashboards',
  method:
    'Product traffic of 36 months, each of which is one part, and two million users. Seven in ten events belong to the workspace that is ' +
    'queried. Each read is measured in turn with the newest page, one of them also with SQL that was written by hand. At the end the ' +
    'newest page is measured while another workspace runs four expensive series at a time.',
  size: { rounds: 7, events: 3_000_000 },
  measure,
};

interface Read {
  readonly name: string;
  readonly path: string;
  readonly parameters: Readonly<Record<string, string>>;
  /** Bounds of its time in milliseconds, and of its time divided by that of the newest page, or of the SQL by hand. */
  readonly bars: { readonly ms?: Bar; readonly newest?: Bar; readonly byHand?: Bar };
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
  const [threeTimes, fiveTimes, inTime] = [{ atMost: 3 }, { atMost: 5 }, { atMost: 300 }];
  return [
    {
      ...{ ...series, name: 'count by day, 30 days', parameters: { ...month, interval: 'day' } },
      bars: { newest: threeTimes },
    },
    {
      ...{ ...series, name: 'count by month and event, everything' },
      parameters: { ...all, interval: 'month', groupBy: 'event' },
      bars: { newest: fiveTimes },
    },
    {
      ...{ ...series, name: 'count by day and a property, 30 days' },
      parameters: { ...month, interval: 'day', groupBy: 'properties.plan' },
      bars: { byHand: { atMost: 1.2 }, ms: inTime },
      byHand: BY_PLAN,
    },
    {
      ...{ ...series, name: 'distinct users by day, 30 days' },
      parameters: { ...month, interval: 'day', measure: 'users', identity: 'raw' },
      bars: { ms: inTime },
    },
    { name: 'names of events', path: '/events/names', parameters: {}, bars: { newest: threeTimes } },
    {
      ...{ name: 'users by a property that 100 of them have', path: '/users' },
      parameters: { 'properties.team': 'team-7' },
      bars: { newest: threeTimes },
    },
    {
      ...{ name: 'users by a property that one of them has', path: '/users' },
      parameters: { 'properties.email': '1234567@example.com' },
      bars: { newest: threeTimes },
    },
    { name: 'properties of the newest 10,000 events', path: '/events/properties', parameters: {}, bars: {} },
    {
      ...{ name: 'values of a property, of the newest 10,000 events', path: '/events/values' },
      parameters: { property: 'properties.plan' },
      bars: {},
    },
    {
      ...{ name: 'funnel of three steps, 30 days', path: '/events/funnel' },
      parameters: { ...month, steps: 'page_viewed,search_performed,report_opened' },
      bars: {},
    },
    {
      ...{ name: 'retention by day, 30 days', path: '/events/retention' },
      parameters: { ...month, interval: 'day', periods: '30' },
      bars: {},
    },
    { name: 'activity of a user with many events', path: '/users/user-0/activity', parameters: {}, bars: {} },
  ];
}

async function measure({ rounds, events }: { rounds: number; events: number }): Promise<readonly Figure[]> {
  await using engine = await BenchEngine.start(12 * 1_024 ** 3);
  const database = await engine.createDatabase('dashboards');
  const endMs = Date.now() - 60_000;
  await storeTraffic(database, createTraffic(events, endMs, LONG_DAYS), events);
  await addUsers(database.client);
  await database.mergeMonths();
  await engine.settleMerges();
  await database.expectExactly(events);

  await using api = await QueryApi.start(engine.url, 'dashboards', WORKSPACE);
  await using neighbour = await QueryApi.start(engine.url, 'dashboards', NEIGHBOUR);
  const figures: Figure[] = [];
  for (const read of readsOf(endMs)) figures.push(...(await measureRead(api, database, read, rounds, endMs)));
  figures.push(...(await measureBesideReports(api, neighbour, rounds, endMs)));
  return figures;
}

/** @throws {VoidRun} when a response is no success, or is not complete: then its time says nothing */
async function measureRead(
  api: QueryApi,
  { client }: BenchDatabase,
  { name, path, parameters, bars, byHand }: Read,
  rounds: number,
  endMs: number,
): Promise<Figure[]> {
  const times: number[] = [];
  const toNewest: number[] = [];
  const toDirect: number[] = [];
  const params = { start: endMs - 30 * DAY_MS, end: endMs };
  for (let round = -1; round < rounds; round += 1) {
    const newest = await api.newestPage();
    const { status, ms, body } = await api.get(path, parameters);
    if (status !== 200 || (body as { complete?: boolean }).complete === false) {
      throw new VoidRun(`${name} got ${status} ${JSON.stringify(body).slice(0, 300)}`);
    }
    const directMs = byHand === undefined ? undefined : await queryByHand(client, byHand, params);
    // Round -1 warms up.
    if (round < 0) continue;
    times.push(ms);
    toNewest.push(ms / newest.ms);
    if (directMs !== undefined) toDirect.push(ms / directMs);
  }
  return [
    figureOf(name, 'time', 'ms', times, bars.ms),
    figureOf(name, '÷ newest page', '', toNewest, bars.newest),
    ...(toDirect.length > 0 ? [figureOf(name, '÷ SQL by hand', '', toDirect, bars.byHand)] : []),
  ];
}

/** Measures the newest page of one workspace alone, and while another one runs expensive series all the time. */
async function measureBesideReports(
  api: QueryApi,
  neighbour: QueryApi,
  rounds: number,
  endMs: number,
): Promise<Figure[]> {
  const pages = async () => {
    const times: number[] = [];
    for (let round = 0; round < 10 * rounds; round += 1) times.push((await api.newestPage()).ms);
    return times;
  };
  const alone = await pages();
  const parameters = {
    startDate: '2000-01-01',
    endDate: new Date(endMs).toISOString(),
    groupBy: 'properties.plan',
    measure: 'users',
    identity: 'raw',
  };
  let stopped = false;
  const reports = Array.from({ length: NEIGHBOURS }, async () => {
    while (!stopped) await neighbour.get('/events/series', { ...parameters, interval: 'month' });
  });
  const beside = await pages();
  stopped = true;
  await Promise.all(reports);
  const name = 'newest page beside series of another workspace';
  return [
    figureOf('newest page', 'time', 'ms', alone),
    figureOf(name, 'time', 'ms', beside),
    figureOf(name, '÷ newest page', '', [median(beside) / median(alone)]),
  ];
}
