import { setTimeout as wait } from 'node:timers/promises';
import { afterAll, beforeAll, expect, inject, onTestFinished, test } from 'vitest';
import { MeasuredRunner } from '../../testing/measured-runner.ts';
import {
  anEvent,
  DELETIONS_FORGOTTEN_MS,
  type QueryService,
  startQuery,
  type TestEvent,
} from '../../testing/query-service.ts';
import type { SeriesReport } from '../series/series.ts';
import { type Overview, OverviewReader } from './overview-reader.ts';

// A morning in Berlin: yesterday had 23 hours, since the clocks went forward.

const ZONE = 'Europe/Berlin';
const NOW_MS = Date.parse('2026-03-30T07:00:00+02:00');
const YESTERDAY = 28;
const HOUR_MS = 3_600_000;

let query: QueryService;

beforeAll(async () => {
  query = await startQuery(inject('clickhouseUrl'));
});
afterAll(() => query.stop());

async function overview(workspace: string, timeZone = ZONE, nowMs = NOW_MS): Promise<Overview> {
  const runner = new MeasuredRunner(query.clickHouse, query.config);
  return await new OverviewReader(runner, query.config).read(timeZone, nowMs, { workspace });
}

/** When a day begins in Berlin, counted from the first one of the overview. */
function startOf(day: number): number {
  return Date.parse(new Date(Date.UTC(2026, 2, 1 + day)).toISOString().replace('Z', day < 29 ? '+01:00' : '+02:00'));
}

/** Events of a day, spread over its first 22 hours. */
function eventsOf(day: number, count: number, given: Partial<TestEvent> = {}): TestEvent[] {
  return Array.from({ length: count }, (_, index) =>
    anEvent({ timestampMs: startOf(day) + Math.floor((index * 22 * HOUR_MS) / count), ...given }),
  );
}

/** Events of yesterday's weekday: the given counts, the oldest first. */
function weekly(counts: readonly number[], given: Partial<TestEvent> = {}): TestEvent[] {
  return counts.flatMap((count, week) => eventsOf(7 * week, count, given));
}

test('a count is unusual that is far outside of those of the same weekday', async () => {
  const cases = [
    { counts: [1, 1, 1, 1, 3], isUnusual: false },
    { counts: [0, 0, 0, 0, 4], isUnusual: false },
    { counts: [0, 0, 0, 0, 5], isUnusual: true },
    { counts: [4, 4, 4, 4, 0], isUnusual: false },
    { counts: [10, 12, 9, 11, 0], isUnusual: true },
    { counts: [100, 104, 90, 97, 120], isUnusual: false },
    { counts: [100, 104, 90, 97, 45], isUnusual: true },
    { counts: [100, 20, 90, 97, 45], isUnusual: false },
    // By 13 %, and by 21 %.
    { counts: [900, 900, 900, 900, 1_020], isUnusual: false },
    { counts: [900, 900, 900, 900, 1_090], isUnusual: true },
  ];
  await query.store('b', [
    ...cases.flatMap(({ counts }) => weekly(counts, { event: `${counts}` })),
    // What happens on other weekdays is no matter.
    ...cases.flatMap(({ counts }) => eventsOf(27, 50, { event: `${counts}` })),
  ]);
  const { changes } = await overview('b');
  for (const { counts, isUnusual } of cases) {
    const found = changes.find(({ event }) => event === `${counts}`);
    expect([counts, found !== undefined]).toEqual([counts, isUnusual]);
    if (!found) continue;
    const [count = 0, ...before] = counts.toReversed();
    expect(found).toMatchObject({ property: null, count, of: null });
    expect(found.expected.from).toBeLessThanOrEqual(Math.min(...before));
    expect(found.expected.to).toBeGreaterThanOrEqual(Math.max(...before));
    expect(count < found.expected.from || count > found.expected.to).toBe(true);
  }
});

test('changes are in the order of how unusual they are, each with its counts of all days', async () => {
  await query.store('c', [
    ...weekly([50, 52, 48, 51, 118], { event: 'grew' }),
    ...weekly([370, 360, 380, 365, 118], { event: 'fell' }),
    ...weekly([60, 60, 60, 60, 61], { event: 'same' }),
    ...weekly([0, 0, 0, 0, 9], { event: 'began' }),
  ]);
  const { weeks, changes, topEvents, days } = await overview('c');
  expect(weeks).toBe(4);
  expect(days.map((day) => Date.parse(day))).toEqual(Array.from({ length: 29 }, (_, day) => startOf(day)));
  expect(changes.map(({ event, count, expected }) => [event, count, expected])).toEqual([
    ['fell', 118, { from: 306, to: 440 }],
    ['grew', 118, { from: 30, to: 75 }],
    ['began', 9, { from: 0, to: 4 }],
  ]);
  expect(changes[0]?.values.filter((_, day) => day % 7 === 0)).toEqual([370, 360, 380, 365, 118]);
  expect(topEvents.map(({ event, count }) => [event, count])).toEqual([
    ...[
      ['fell', 118],
      ['grew', 118],
      ['same', 61],
      ['began', 9],
    ],
  ]);
});

test('a value of a property is compared by its share of the events of its name', async () => {
  const properties = (plan: string) => ({
    event: 'paid',
    properties: JSON.stringify({ plan, list: [1], at: '2026-03-01' }),
  });
  await query.store('d', [
    // Twice the events of the last week, and the same share of free ones.
    ...weekly([40, 40, 40, 40, 80], properties('free')),
    ...weekly([50, 50, 50, 50, 20], properties('business')),
    ...weekly([10, 10, 10, 10, 100], properties('pro')),
  ]);
  const { changes, sampledShare } = await overview('d');
  expect(sampledShare).toBe(1);
  expect(changes.map(({ event, property, value, count, of }) => [event, property, value, count, of?.at(-1)])).toEqual([
    ['paid', null, null, 200, undefined],
    ['paid', 'plan', 'business', 20, 200],
    ['paid', 'plan', 'pro', 100, 200],
  ]);
});

test('its figures are those of the series that the console draws', async () => {
  await query.store('e', [
    ...Array.from({ length: 30 }, (_, day) =>
      eventsOf(day, 3 + (day % 5), { userId: `u${day % 9}`, groupId: `g${day % 4}` }),
    ).flat(),
    ...eventsOf(YESTERDAY, 4, { userId: 'yesterday' }),
    anEvent({ timestampMs: NOW_MS + 1 }),
  ]);
  const { figures, days, endDate } = await overview('e');
  expect(figures.map(({ measure, days }) => [measure, days])).toEqual([
    ...[
      ['count', 1],
      ['users', 1],
      ['organizations', 1],
      ['users', 7],
    ],
  ]);
  for (const figure of figures) {
    const series = async (startDate = '', end = endDate, interval = 'day') => {
      const path = `/events/series?measure=${figure.measure}&startDate=${startDate}&endDate=${end}&interval=${interval}&timeZone=${ZONE}`;
      const { status, text } = await query.get(path, 'e');
      expect([status, text]).toEqual([200, text]);
      return JSON.parse(text) as SeriesReport;
    };
    expect(figure.value).toBe((await series(days.at(-figure.days))).total);
    expect(figure.previous).toBe(figure.values.at(figure.days === 1 ? -8 : -2));
    if (figure.days > 1) continue;
    expect(figure.values).toEqual((await series(days[0])).series[0]?.values);
    expect(figure.today).toBe(
      (await series(new Date(startOf(29)).toISOString(), new Date(NOW_MS).toISOString())).total,
    );
  }
});

test('a time zone whose days begin within an hour has the same numbers', async () => {
  const events = [...eventsOf(YESTERDAY, 50, { event: 'edge' }), ...eventsOf(0, 9, { event: 'edge' })];
  await query.store('f', events);
  const zone = 'Asia/Kathmandu';
  const { figures, topEvents, days, endDate } = await overview('f', zone);
  expect(days[0]).toBe('2026-02-28T18:15:00.000Z');
  const count = (fromMs: number, toMs: number) =>
    events.filter(({ timestampMs }) => timestampMs >= fromMs && timestampMs <= toMs).length;
  const expected = days.map((day, index) =>
    count(Date.parse(day), Date.parse(days[index + 1] ?? endDate) - (days[index + 1] ? 1 : 0)),
  );
  expect(figures[0]?.values).toEqual(expected);
  expect(topEvents[0]?.values).toEqual(expected);
});

test('a workspace that is new has its numbers, and says that there is nothing to compare with', async () => {
  expect(await overview('g')).toMatchObject({ weeks: 0, changes: [], topEvents: [], complete: true });
  await query.store('g', eventsOf(15, 40, { event: 'old' }));
  await query.store('g', eventsOf(YESTERDAY, 40, { event: 'new' }));
  const { weeks, changes, topEvents, figures } = await overview('g');
  expect([weeks, changes, figures[0]?.value]).toEqual([1, [], 40]);
  expect(topEvents).toMatchObject([{ event: 'new', count: 40, expected: null }]);
  // The first day is not whole, and the second one is the same weekday two weeks before.
  await query.store('g', eventsOf(13, 1, { event: 'first' }));
  expect((await overview('g')).changes.map(({ event }) => event)).toEqual(['new']);
});

test('thousands of names, and names and values that look like something else, are bounded', async () => {
  const odd = ["'; DROP TABLE events --", '{days:Array(Int64)}', '\u0000', '🙂'.repeat(200), 'é'];
  await query.store('h', [
    ...Array.from({ length: 2_000 }, (_, index) => eventsOf(YESTERDAY, 1, { event: `name ${index}` })).flat(),
    ...odd.flatMap((event) =>
      weekly([100, 100, 100, 100, 400], { event, properties: JSON.stringify({ [event]: event }) }),
    ),
    ...odd.flatMap((value) => eventsOf(YESTERDAY, 300, { event: 'é', properties: JSON.stringify({ [value]: value }) })),
    ...Array.from({ length: 50 }, (_, index) => eventsOf(YESTERDAY, 20, { event: `new ${index}` })).flat(),
  ]);
  const { changes, topEvents, sampledShare } = await overview('h');
  expect(sampledShare).toBeLessThan(1);
  expect(changes.filter(({ property }) => property === null)).toHaveLength(20);
  expect(topEvents).toHaveLength(10);
  for (const event of odd)
    expect(changes.some((change) => change.event === event && change.property === null)).toBe(true);
  expect(changes.find(({ event, property }) => event === 'é' && property === "'; DROP TABLE events --")).toMatchObject({
    ...{ value: "'; DROP TABLE events --", count: expect.any(Number) },
  });
});

test('what a deleted user did is not counted', async () => {
  const at = { timestampMs: Date.now() - 24 * HOUR_MS, receivedAtUs: 1_000 };
  await query.store('a', [
    ...Array.from({ length: 9 }, () => anEvent({ ...at, event: 'gone', userId: 'ada' })),
    ...Array.from({ length: 7 }, () => anEvent({ ...at, event: 'kept', userId: 'bob' })),
  ]);
  const deletion = { workspace_id: 'a', user_id: 'ada', version: 2_000 };
  await query.insert('user_deletions', [deletion]);
  await query.insert('pending_deletions', [{ ...deletion, stored_at: 1 }]);
  await wait(DELETIONS_FORGOTTEN_MS);
  const { status, text } = await query.get('/overview');
  expect([status, text]).toEqual([200, text]);
  const { figures, topEvents } = JSON.parse(text) as Overview;
  const totals = figures
    .filter(({ days }) => days === 1)
    .map(({ values, today }) => [...values, today].reduce((sum: number, value) => sum + (value ?? 0), 0));
  expect(totals).toEqual([7, 1, 0]);
  expect(topEvents.map(({ event }) => event)).not.toContain('gone');
});

test('what is too much to read is left out, and the rest is there', async () => {
  const small = await startQuery(inject('clickhouseUrl'), { QUERY_ROWS_READ_MAX: '100' });
  onTestFinished(() => small.stop());
  const at = { timestampMs: Date.now() - 24 * HOUR_MS };
  await small.store(
    'a',
    Array.from({ length: 2_000 }, (_, index) => anEvent({ ...at, userId: `u${index}` })),
  );
  const { status, text } = await small.get('/overview');
  expect([status, text]).toEqual([200, text]);
  const { figures, complete } = JSON.parse(text) as Overview;
  const [events, users] = figures;
  expect([events?.values.includes(2_000) || events?.today === 2_000, complete]).toEqual([true, false]);
  expect([users?.value, users?.today, users?.values.every((value) => value === null)]).toEqual([null, null, true]);
});

test('the route takes a time zone in any case, UTC without one, and nothing else', async () => {
  expect((await query.get('/overview?timeZone=europe/berlin')).body).toMatchObject({ timeZone: ZONE });
  expect((await query.get('/overview')).body).toMatchObject({ timeZone: 'UTC' });
  const { status, body } = await query.get('/overview?timeZone=Mars/Olympus&startDate=2026-01-01&event=a');
  expect([status, body.errors.map(({ path }) => path)]).toEqual([400, ['timeZone', 'startDate', 'event']]);
});
