import { createDatabase } from '@sluice/shared/clickhouse/testing/test-database';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import type { Tables } from '../../store/tables.ts';
import { MeasuredRunner, type ReadCost } from '../../testing/measured-runner.ts';
import { type QueryService, startQuery } from '../../testing/query-service.ts';
import { PageReader } from './events-page.ts';
import { type EventsRequest, parseEventsRequest } from './events-parameters.ts';
import { countQuery } from './events-query.ts';
import { PageDensities } from './page-windows.ts';

let query: QueryService;
let runner: MeasuredRunner;
let reader: PageReader;

const END_MS = Date.UTC(2026, 9, 31);
const MONTH_MS = 30 * 86_400_000;
const SMALL_ROWS = 20_000;
const GRANULE_ROWS = 128;

/** The workspace `a` has events of one month, in three parts; `b` has eight times as many of 36 months, in over 100. */
beforeAll(async () => {
  query = await startQuery(inject('clickhouseUrl'), {}, undefined, createDatabase);
  runner = new MeasuredRunner(query.clickHouse, query.config);
  reader = new PageReader({
    queryRunner: runner,
    densities: new PageDensities(),
    timeoutMs: 60_000,
    now: () => END_MS,
  });
  await query.clickHouse.command({ query: 'SYSTEM STOP MERGES events' });
  for (const part of [0, 1, 2]) {
    await fill('a', SMALL_ROWS / 3, 1, part);
    await fill('b', (8 * SMALL_ROWS) / 3, 36, part);
    await fillEqualTimes(part);
  }
  await addOrganizations('a', 300);
  await addOrganizations('b', 100_000);
});
afterAll(() => query.stop());

async function fill(workspace: string, rows: number, months: number, seed: number): Promise<void> {
  await query.clickHouse.command({
    query: `INSERT INTO events (workspace_id, timestamp, uuid, event, user_id, group_id, received_at)
      SELECT {workspace:String},
        fromUnixTimestamp64Milli({end:Int64} - toInt64(cityHash64(number, {seed:UInt8}) % {span:UInt64})) AS time,
        generateUUIDv4(number), if(number % 2 = 0, 'opened', 'closed'), toString(number % 1000),
        toString(number % 300), time
      FROM numbers({rows:UInt64})`,
    query_params: { workspace, rows: Math.floor(rows), end: END_MS, span: months * MONTH_MS, seed },
    clickhouse_settings: { max_partitions_per_insert_block: '0' },
  });
}

/** Every fourth organization has a plan. 300 have events, ten of these a manager of their own. */
async function addOrganizations(workspace: string, organizations: number): Promise<void> {
  await query.clickHouse.command({
    query: `INSERT INTO entity_properties (workspace_id, kind, id, property, register)
      SELECT {workspace:String}, 'organization', concat(if(number < 300, '', 'without events '), toString(number)), said.1,
        (1, generateUUIDv4(number), 'set', said.2)
      FROM numbers({organizations:UInt64})
      ARRAY JOIN [
        ('plan', if(number % 4 = 0, '"pro"', '"free"')),
        ('manager', if(number < 300 AND number % 30 = 0, '"ada"', '"bob"'))
      ] AS said`,
    query_params: { workspace, organizations },
  });
}

/** The workspace `c` has its events at one time, as an import of dates has. */
async function fillEqualTimes(seed: number): Promise<void> {
  await query.clickHouse.command({
    query: `INSERT INTO events (workspace_id, timestamp, uuid, event, received_at)
      SELECT 'c', fromUnixTimestamp64Milli({end:Int64}), generateUUIDv4(number + {seed:UInt8}), 'e', now64(6)
      FROM numbers({rows:UInt64})`,
    query_params: { rows: SMALL_ROWS * 2, end: END_MS, seed },
  });
}

function request(workspace: string, parameters: Readonly<Record<string, string>> = {}): EventsRequest {
  const listed = Object.fromEntries(Object.entries(parameters).map(([name, value]) => [name, [value]]));
  return parseEventsRequest(listed, workspace);
}

async function costOf(asked: EventsRequest): Promise<ReadCost> {
  return await runner.measure(() => rowsOf(asked));
}

async function rowsOf(asked: EventsRequest): Promise<(readonly string[])[]> {
  const rows: (readonly string[])[] = [];
  for await (const batch of reader.read(asked, { workspace: asked.workspace })) {
    rows.push(...(batch as readonly string[][]));
  }
  return rows;
}

/** The request for the page after the first `count` events of a list, which are read in one page. */
async function after(asked: EventsRequest, count: number): Promise<EventsRequest> {
  const last = (await rowsOf({ ...asked, limit: count })).at(count - 1) as readonly string[];
  const timestampMs = Date.parse(`${last[10]}Z`);
  return { ...asked, after: { value: timestampMs, uuid: String(last[0]), timestampMs } };
}

function expectNoGrowth(small: ReadCost, large: ReadCost): void {
  expect(large.rows).toBeLessThanOrEqual(small.rows * 1.3);
  expect(large.parts).toBeLessThanOrEqual(small.parts);
  expect(large.queries).toBeLessThanOrEqual(small.queries);
}

test('the data is in more than a hundred parts', async () => {
  const result = await query.clickHouse.query({
    query: `SELECT uniqExact(_part) > 100 FROM events WHERE workspace_id = 'b'`,
    format: 'JSONCompactEachRow',
  });
  expect(await result.json()).toEqual([[1]]);
});

test.each([
  ['the newest page', {}],
  ['the oldest page', { orderByDirection: 'ASC' }],
  ['the newest page of an event name', { event: 'opened' }],
  ['the newest page without an event name', { 'event[ne]': 'opened' }],
  ['the newest page of organizations with a property', { 'organization.properties.plan': 'pro' }],
  ['the newest page without these', { 'organization.properties.plan[ne]': 'pro' }],
  ['a page that ends at a date', { endDate: new Date(END_MS - 86_400_000).toISOString() }],
])('%s reads no more of 36 months than of one, in any number of parts', async (_, parameters) => {
  // The first page of a list shows how its events lie in time.
  for (const workspace of ['a', 'b']) await rowsOf(request(workspace, parameters));
  const [small, large] = [await costOf(request('a', parameters)), await costOf(request('b', parameters))];
  expect(small.rows).toBeGreaterThan(100);
  expectNoGrowth(small, large);
});

test('the newest page of ten of 300 organizations reads no more of 36 months and more organizations than of one month', async () => {
  const parameters = { 'organization.properties.manager': 'ada' };
  for (const workspace of ['a', 'b']) await rowsOf(request(workspace, parameters));
  const [small, large] = [await costOf(request('a', parameters)), await costOf(request('b', parameters))];
  expect(small.rows).toBeGreaterThan(100);
  expect(large.rows).toBeLessThanOrEqual(small.rows * 1.3);
  expect(large.queries).toBeLessThanOrEqual(small.queries);
});

test('a page behind a cursor reads no more than the first page, anywhere in 36 months', async () => {
  const asked = request('b');
  await rowsOf(asked);
  const first = await costOf(asked);
  for (const endMs of [END_MS, END_MS - 10 * MONTH_MS, END_MS - 30 * MONTH_MS]) {
    const from = await after({ ...asked, endMs }, 200);
    const cost = await costOf({ ...from, endMs: undefined });
    // It may lie in the parts of two months.
    expect(cost.rows).toBeLessThanOrEqual(first.rows * 2.2);
    expect(cost.parts).toBeLessThanOrEqual(first.parts * 2);
    expect(cost.queries).toBe(1);
  }
});

test('a page behind a cursor among many events of one time reads no more than the first page', async () => {
  const asked = request('c');
  await rowsOf(asked);
  const first = await costOf(asked);
  const deep = await costOf(await after(asked, 1_000 * 60));
  // In each of the three parts, the page may begin and end inside of a granule, and how many of its events the part has is chance.
  expect(deep.rows).toBeLessThanOrEqual(first.rows + 3 * 3 * GRANULE_ROWS);
  expect(deep.queries).toBe(first.queries);
});

test('planning a look-up by uuid does not look at the granules of the workspace one by one', async () => {
  const [row] = await rowsOf(request('b'));
  for (const operator of ['uuid', 'uuid[in]', 'uuid[ne]']) {
    const cost = await costOf(request('b', { [operator]: String(row?.[0]) }));
    expect([operator, cost.exhaustivePlans]).toEqual([operator, 0]);
  }
});

test('a cursor is found by the sorting key, in a window that leaves few granules to plan with', async () => {
  const asked = request('b');
  await rowsOf(asked);
  const cost = await costOf(await after(asked, 500));
  expect(cost.granules).toBeLessThan(100);
});

test('the total of a workspace is counted by the sorting key: it reads a few rows of each part', async () => {
  // One part of one month, with some 30,000 different names and hours.
  await query.clickHouse.command({
    query: `INSERT INTO events (workspace_id, timestamp, uuid, event, received_at)
      SELECT 'd', fromUnixTimestamp64Milli({end:Int64} - toInt64(cityHash64(number) % {span:UInt64})) AS time,
        generateUUIDv4(number), concat('e', toString(number % 50)), time
      FROM numbers({rows:UInt64})`,
    query_params: { rows: SMALL_ROWS * 4, end: END_MS, span: MONTH_MS },
  });
  const statement = (tables: Tables) => countQuery(tables, request('d'), undefined);
  const cost = await runner.measure(async () => {
    expect(await runner.all({ statement, kind: 'events_count', workspace: 'd' })).toEqual([[SMALL_ROWS * 4]]);
  });
  expect(cost.rows).toBeLessThanOrEqual(4 * GRANULE_ROWS);
});
