import { afterAll, beforeAll, beforeEach, expect, inject, test, vi } from 'vitest';
import { atCut, DAY_MS, keep, NOW, TODAY } from '../../testing/kept-events.ts';
import { anEvent, type QueryService, startQuery, type TestEvent } from '../../testing/query-service.ts';
import { expectEvents, listenTo } from '../../testing/streams.ts';

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

async function uuids(workspace: string): Promise<unknown[]> {
  const { body } = await query.get('/events?limit=1000', workspace);
  expect(body.total).toBe(body.results.length);
  return body.results.map(({ uuid }) => uuid).sort();
}

const idsOf = (events: readonly TestEvent[]) => events.map(({ uuid }) => uuid).sort();

test('events expire with their day of UTC: the first millisecond that is kept is shown, the one before is not', async () => {
  const [before, first] = atCut(30) as [TestEvent, TestEvent];
  await query.store('a', [before, first]);
  expect(await uuids('a')).toEqual(idsOf([before, first]));
  await keep(query, { a: 30 });
  expect(await uuids('a')).toEqual([first.uuid]);
  expect((await query.get(`/events?uuid=${before.uuid}`)).body).toMatchObject({ results: [], total: 0 });
  vi.setSystemTime(TODAY + DAY_MS - 1);
  expect(await uuids('a')).toEqual([first.uuid]);
  vi.setSystemTime(TODAY + DAY_MS);
  expect(await uuids('a')).toEqual([]);
  vi.setSystemTime(NOW);
});

test('each workspace has its own retention or that of all others; a longer one and none show again what is stored', async () => {
  await keep(query, {});
  const [old, young] = [anEvent({ timestampMs: TODAY - 20 * DAY_MS }), anEvent({ timestampMs: TODAY })];
  for (const workspace of ['a', 'b']) await query.store(workspace, [old, young]);
  const shown = async () => [(await uuids('a')).length, (await uuids('b')).length];
  expect(await shown()).toEqual([2, 2]);
  await keep(query, { a: 10 });
  expect(await shown()).toEqual([1, 2]);
  await keep(query, { a: 20, '': 10 });
  expect(await shown()).toEqual([2, 1]);
  await keep(query, { '': 20 });
  expect(await shown()).toEqual([2, 2]);
});

test('an event that arrives expired is stored, and neither streamed nor returned', async () => {
  await keep(query, { a: 30, b: 40 });
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
