import { setTimeout as wait } from 'node:timers/promises';
import fc, { sample } from '@sluice/shared/testing/fast-check';
import { afterAll, beforeAll, beforeEach, expect, inject, test, vi } from 'vitest';
import { LOCAL_TABLES } from '../clickhouse/tables.ts';
import { parseEventsRequest } from '../events/events-parameters.ts';
import { countQuery, pageQuery } from '../events/events-query.ts';
import { DAYS, HOURS, hourCountsQuery } from '../reports/hour-counts.ts';
import { namesQuery } from '../reports/menus/names-query.ts';
import { storeMany } from '../testing/load.ts';
import { MeasuredRunner } from '../testing/measured-runner.ts';
import { anEvent, type QueryService, startQuery, TEST_WORKSPACES, type TestEvent } from '../testing/query-service.ts';
import { expectEvents, listenTo } from '../testing/streams.ts';

const DAY_MS = 86_400_000;
const NOW = Date.UTC(2026, 2, 10, 13, 30);
const TODAY = Date.UTC(2026, 2, 10);

/** Longer than the service reuses its look-up of retentions, in milliseconds. */
const RETENTION_FORGOTTEN_MS = 1_050;

/** Long enough to keep every event of these tests. */
const LONG_DAYS = 36_500;

let query: QueryService;

beforeAll(async () => {
  vi.useFakeTimers({ toFake: ['Date'], now: NOW });
  query = await startQuery(inject('clickhouseUrl'), { STREAM_INTERVAL_MS: '50' });
});
afterAll(async () => {
  await query.stop();
  vi.useRealTimers();
});

beforeEach(async () => {
  for (const table of ['events', 'entities', 'pending_deletions']) {
    await query.clickHouse.command({ query: `TRUNCATE TABLE ${table}` });
  }
});

let settings = 0;

/** Sets for how many days the events of each workspace are kept, of those alone; the empty name is that of all others. */
async function keep(days: Readonly<Record<string, number>>): Promise<void> {
  settings += 1;
  const rows = ['', ...TEST_WORKSPACES].map((workspace_id) => ({
    ...{ workspace_id, days: days[workspace_id] ?? 0 },
    set_at: settings,
  }));
  await query.insert('retention', rows);
  await wait(RETENTION_FORGOTTEN_MS);
}

/** The first millisecond that is kept with a retention. */
function keptFrom(days: number): number {
  return TODAY - days * DAY_MS;
}

const DATES = 'startDate=2025-12-20T05:30:00Z&endDate=2026-03-12';

/** Every read of events, with and without dates. */
const READS = [
  '/events?limit=1000',
  '/events?limit=1000&orderByDirection=ASC',
  '/events?limit=1000&orderByField=userId&orderByDirection=ASC',
  '/events?limit=0&total=capped',
  '/events?limit=0&total=exact&event=e1',
  '/events?limit=0&total=exact&userId=u1&properties.n[gte]=3',
  '/events?limit=3&offset=150',
  `/events?limit=2&total=exact&${DATES}`,
  '/events/names',
  `/events/names?${DATES}&userId=u2`,
  '/events/properties',
  '/events/values?property=properties.n',
  ...['minute', 'hour', 'day', 'week', 'month'].map(
    (interval) =>
      `/events/series?interval=${interval}&${interval === 'minute' ? 'startDate=2026-03-01&endDate=2026-03-02' : DATES}`,
  ),
  `/events/series?interval=day&timeZone=Asia/Kathmandu&groupBy=event&${DATES}`,
  `/events/series?interval=week&measure=users&${DATES}`,
  `/events/funnel?steps=e0,e1&${DATES}`,
  `/events/retention?interval=week&${DATES}`,
  '/events/export?startDate=2025-01-01',
  '/users/u1/activity',
];

async function read(url: string, workspace: string): Promise<string> {
  const { statusCode, body } = await query.app.inject({ url, headers: { authorization: `Bearer ${workspace}` } });
  expect([statusCode, url], body).toEqual([200, url]);
  // The cursor of a page has its workspace.
  return body.replace(/"nextCursor":"[^"]+"/, '"nextCursor":"…"');
}

/** Reads all pages by cursor, each with the total. */
async function pages(workspace: string): Promise<unknown[]> {
  const found: unknown[] = [];
  for (let cursor = ''; ; ) {
    const { body } = await query.get(`/events?limit=40${cursor}`, workspace);
    found.push([body.total, ...body.results]);
    if (body.nextCursor === null) return found;
    cursor = `&cursor=${body.nextCursor}`;
  }
}

async function expectEqualReads(workspace: string, reference: string): Promise<void> {
  for (const url of READS) {
    const [text, expected] = [await read(url, workspace), await read(url, reference)];
    // Of long texts, what differs first.
    const at = [...expected].findIndex((character, index) => character !== text[index]);
    expect(text === expected ? '' : text.slice(at - 200, at + 50), `${workspace} ${url}`).toBe(
      text === expected ? '' : expected.slice(at - 200, at + 50),
    );
  }
  expect(await pages(workspace)).toEqual(await pages(reference));
}

const generated = fc.record({
  uuid: fc.uuid(),
  timestampMs: fc
    .tuple(fc.integer({ min: -3, max: 75 }), fc.constantFrom(0, -1, 1, 3_600_000, 43_211_234))
    .map(([days, ms]) => TODAY - days * DAY_MS + ms),
  event: fc.constantFrom('e0', 'e1', 'e2'),
  userId: fc.constantFrom('', 'u1', 'u2', 'gone'),
  properties: fc.constantFrom('{"n":1}', '{"n":5,"a":{"b":true}}', '{}'),
});

/** The workspaces of a test, their days, and those with the same events but the ones that expire. */
const PAIRS = [
  { workspace: 'a', days: 9, reference: 'b' },
  // As all others.
  { workspace: 'c', days: 40, reference: 'd' },
  { workspace: 'e', days: LONG_DAYS, reference: 'f' },
] as const;

/** The events of the cut itself: the last that expired, and the first that is kept. */
function atCut(days: number): TestEvent[] {
  return [-1, 0].map((ms) => anEvent({ timestampMs: keptFrom(days) + ms, event: 'e0', userId: 'u1' }));
}

test('a workspace of which events expired equals one that never had them, before and after they are erased', async () => {
  for (const { workspace, days, reference } of PAIRS) {
    const events = [...sample(generated, 150).map((fields) => anEvent(fields)), ...(days < 100 ? atCut(days) : [])];
    const kept = events.filter(({ timestampMs }) => timestampMs >= keptFrom(days));
    expect(kept.length < events.length).toBe(days < 100);
    for (const [name, some] of [
      [workspace, events],
      [reference, kept],
    ] as const) {
      for (let at = 0; at < some.length; at += 60) await query.store(name, some.slice(at, at + 60));
      const user = { workspace_id: name, id: 'u1', kind: 'user', first_seen_at: NOW, last_seen_at: NOW, version: 1 };
      await query.insert('entities', [user]);
      const deletion = { workspace_id: name, user_id: 'gone', version: 9e15 };
      await query.insert('pending_deletions', [{ ...deletion, stored_at: 1 }]);
    }
  }
  await keep({ '': 40, a: 9, e: LONG_DAYS, f: LONG_DAYS });
  for (const { workspace, reference } of PAIRS) await expectEqualReads(workspace, reference);

  for (const { workspace, days } of PAIRS) {
    await query.clickHouse.command({
      query: `ALTER TABLE events DELETE WHERE workspace_id = {workspace:String}
        AND timestamp < fromUnixTimestamp64Milli({keptFrom:Int64})`,
      query_params: { workspace, keptFrom: keptFrom(days) },
      clickhouse_settings: { mutations_sync: '2' },
    });
  }
  for (const { workspace, reference } of PAIRS) await expectEqualReads(workspace, reference);
});

async function uuids(workspace: string): Promise<unknown[]> {
  const { body } = await query.get('/events?limit=1000', workspace);
  expect(body.total).toBe(body.results.length);
  return body.results.map(({ uuid }) => uuid).sort();
}

const idsOf = (events: readonly TestEvent[]) => events.map(({ uuid }) => uuid).sort();

test('events expire with their day of UTC: the first millisecond that is kept is shown, the one before is not', async () => {
  const [before, first] = atCut(30) as [TestEvent, TestEvent];
  await query.store('a', [before, first]);
  await keep({});
  expect(await uuids('a')).toEqual(idsOf([before, first]));
  await keep({ a: 30 });
  expect(await uuids('a')).toEqual([first.uuid]);
  expect((await query.get(`/events?uuid=${before.uuid}`)).body).toMatchObject({ results: [], total: 0 });
  vi.setSystemTime(TODAY + DAY_MS - 1);
  expect(await uuids('a')).toEqual([first.uuid]);
  vi.setSystemTime(TODAY + DAY_MS);
  expect(await uuids('a')).toEqual([]);
  vi.setSystemTime(NOW);
});

test('each workspace has its own retention or that of all others; a longer one and none show again what is stored', async () => {
  await keep({});
  const [old, young] = [anEvent({ timestampMs: TODAY - 20 * DAY_MS }), anEvent({ timestampMs: TODAY })];
  for (const workspace of ['a', 'b']) await query.store(workspace, [old, young]);
  const shown = async () => [(await uuids('a')).length, (await uuids('b')).length];
  expect(await shown()).toEqual([2, 2]);
  await keep({ a: 10 });
  expect(await shown()).toEqual([1, 2]);
  await keep({ a: 20, '': 10 });
  expect(await shown()).toEqual([2, 1]);
  await keep({ '': 20 });
  expect(await shown()).toEqual([2, 2]);
});

test('an event that arrives expired is stored, and neither streamed nor returned', async () => {
  await keep({ a: 30, b: 40 });
  const streams = await listenTo(query);
  try {
    const [ofA, ofB] = [await streams.open(), await streams.open('', { workspace: 'b' })];
    const [expired, kept] = atCut(30) as [TestEvent, TestEvent];
    for (const workspace of ['a', 'b']) {
      await query.store(workspace, [expired]);
      await query.store(workspace, [kept]);
    }
    await expectEvents(ofB, [expired, kept]);
    await expectEvents(ofA, [kept]);
    expect(await uuids('a')).toEqual([kept.uuid]);
  } finally {
    await streams.closeAll();
  }
});

test('a retention adds no rows to what pages and totals read, and counts are still answered by projections', async () => {
  const rows = 200_000;
  await storeMany(query, 'a', rows);
  await query.clickHouse.command({ query: 'OPTIMIZE TABLE events FINAL' });
  const newest = parseEventsRequest({}, 'a');
  const selection = { fields: [], properties: [], startMs: undefined, endMs: undefined };
  const keysOf = (start: string) => ({ event: 'event', day: start });
  const statements = {
    page: (tables: typeof LOCAL_TABLES) => pageQuery(tables, newest, undefined),
    total: (tables: typeof LOCAL_TABLES) => countQuery(tables, newest, undefined),
    days: (tables: typeof LOCAL_TABLES) => hourCountsQuery(tables, selection, keysOf, undefined, [DAYS, HOURS]),
    hours: (tables: typeof LOCAL_TABLES) => hourCountsQuery(tables, selection, keysOf, undefined, [HOURS]),
    names: (tables: typeof LOCAL_TABLES) =>
      namesQuery(tables, { selection, columns: ['event'], prefix: '', limit: 10 }, undefined),
  };
  const readBy = async (statement: (typeof statements)['page'], tables: typeof LOCAL_TABLES) => {
    const runner = new MeasuredRunner(query.clickHouse, query.config, tables);
    return (await runner.measure(() => runner.all({ statement, kind: 'events_page', workspace: 'a' }))).rows;
  };
  const keptTables = LOCAL_TABLES.keptFrom(Date.UTC(2026, 2, 2));
  for (const [name, statement] of Object.entries(statements)) {
    const [all, kept] = [await readBy(statement, LOCAL_TABLES), await readBy(statement, keptTables)];
    // A granule has up to 128 rows.
    expect(kept, name).toBeLessThanOrEqual(all + 128);
    expect(kept, name).toBeLessThan(rows / 100);
  }
});
