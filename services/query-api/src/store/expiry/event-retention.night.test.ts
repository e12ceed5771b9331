import fc, { sample } from '@sluice/shared/testing/fast-check';
import { afterAll, beforeAll, expect, inject, test, vi } from 'vitest';
import { atCut, DAY_MS, keep, keptFrom, NOW, TODAY } from '../../testing/kept-events.ts';
import { anEvent, type QueryService, startQuery } from '../../testing/query-service.ts';

/** Long enough to keep every event of these tests. */
const LONG_DAYS = 36_500;

let query: QueryService;

beforeAll(async () => {
  vi.useFakeTimers({ toFake: ['Date'], now: NOW });
  query = await startQuery(inject('clickhouseUrl'));
});
afterAll(async () => {
  await query.stop();
  vi.useRealTimers();
});

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
  `/events/funnel/people?steps=e0,e1&step=1&${DATES}`,
  `/events/retention?interval=week&${DATES}`,
  `/events/retention/people?interval=month&cohort=2026-01-15&${DATES}`,
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
  await keep(query, { '': 40, a: 9, e: LONG_DAYS, f: LONG_DAYS });
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
