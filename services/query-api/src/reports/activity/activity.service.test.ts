import { setTimeout as wait } from 'node:timers/promises';
import { afterAll, beforeAll, beforeEach, expect, inject, test } from 'vitest';
import {
  anEvent,
  DELETIONS_FORGOTTEN_MS,
  type QueryService,
  startQuery,
  type TestEvent,
} from '../../testing/query-service.ts';
import type { Activity } from './activity.ts';

const DAY_MS = 86_400_000;

let query: QueryService;

beforeAll(async () => {
  query = await startQuery(inject('clickhouseUrl'));
});
afterAll(() => query.stop());

beforeEach(async () => {
  for (const table of ['events', 'entities', 'user_deletions', 'pending_deletions', 'user_sightings']) {
    await query.clickHouse.command({ query: `TRUNCATE TABLE ${table}` });
  }
});

/** Stores what the writer stores of events of `ada` in `acme`. */
async function storeAll(events: readonly TestEvent[]): Promise<void> {
  await query.store('a', events);
  await query.insert(
    'entities',
    events.flatMap(({ userId, groupId, timestampMs, receivedAtUs }) => {
      const seen = { workspace_id: 'a', first_seen_at: timestampMs, last_seen_at: timestampMs, version: receivedAtUs };
      return [
        { ...seen, kind: 'user', id: userId },
        { ...seen, kind: 'organization', id: groupId },
      ].filter(({ id }) => id !== '');
    }),
  );
}

async function activity(path: string): Promise<Activity> {
  const { status, body } = await query.get(path);
  expect(status, JSON.stringify(body)).toBe(200);
  return body as unknown as Activity;
}

/** The numbers in the plainest way. The last day of the response is today, whatever the time is by now. */
function fold(events: readonly TestEvent[], { days }: Activity): Pick<Activity, 'days' | 'events'> {
  const todayMs = Date.parse(days.at(-1)?.date ?? '');
  const dates = Array.from({ length: 30 }, (_, index) =>
    new Date(todayMs - (29 - index) * DAY_MS).toISOString().slice(0, 10),
  );
  const dateOf = ({ timestampMs }: TestEvent) => new Date(timestampMs).toISOString().slice(0, 10);
  const recent = events.filter((event) => dates.includes(dateOf(event)));
  return {
    days: dates.map((date) => ({ date, count: recent.filter((event) => dateOf(event) === date).length })),
    events: [...Map.groupBy(recent, ({ event }) => event)]
      .map(([event, { length: count }]) => ({ event, count }))
      .sort((a, b) => b.count - a.count || Buffer.compare(Buffer.from(a.event), Buffer.from(b.event)))
      .slice(0, 10),
  };
}

/** Events of the last 40 days and of tomorrow, at the bounds of days, of more names than are returned. */
function eventsUntil(nowMs: number): TestEvent[] {
  const todayMs = Math.floor(nowMs / DAY_MS) * DAY_MS;
  return Array.from({ length: 160 }, (_, index) =>
    anEvent({
      timestampMs: todayMs + DAY_MS - (index % 40) * DAY_MS + (index % 3 === 0 ? DAY_MS - 1 : index % 2),
      event: `e${Math.floor(Math.sqrt(index))}`,
      userId: index % 5 === 0 ? 'bob' : 'ada',
      groupId: index % 7 === 0 ? '' : 'acme',
    }),
  );
}

test('the activity of a user and of an organization is a fold of their events', async () => {
  const events = eventsUntil(Date.now());
  await storeAll(events);
  for (const [path, own] of [
    ['/users/ada/activity', events.filter(({ userId }) => userId === 'ada')],
    ['/organizations/acme/activity', events.filter(({ groupId }) => groupId === 'acme')],
  ] as const) {
    const startedMs = Date.now();
    const found = await activity(path);
    const times = own.map(({ timestampMs }) => timestampMs);
    expect(found).toEqual({
      ...fold(own, found),
      firstSeenAt: new Date(Math.min(...times)).toISOString(),
      lastSeenAt: new Date(Math.max(...times)).toISOString(),
    });
    expect(found.events).toHaveLength(10);
    const today = found.days.at(-1)?.date;
    expect([startedMs, Date.now()].map((ms) => new Date(ms).toISOString().slice(0, 10))).toContain(today);
  }
});

test('who did nothing lately has thirty days without events', async () => {
  await storeAll([anEvent({ userId: "o'\0h/ä", timestampMs: Date.UTC(2020, 0, 1) })]);
  const found = await activity(`/users/${encodeURIComponent("o'\0h/ä")}/activity`);
  expect(found).toMatchObject({ events: [], firstSeenAt: '2020-01-01T00:00:00.000Z' });
  expect(found.days.map(({ count }) => count)).toEqual(Array.from({ length: 30 }, () => 0));
});

test('a deleted user has no activity, its events count for no organization, and who came back begins anew', async () => {
  const nowMs = Date.now();
  const [before, bob] = [
    anEvent({ userId: 'ada', groupId: 'acme', timestampMs: nowMs - DAY_MS, event: 'before', receivedAtUs: 1_000 }),
    anEvent({ userId: 'bob', groupId: 'acme', timestampMs: nowMs - DAY_MS, event: 'bob' }),
  ];
  await storeAll([before, bob]);
  const deletion = { workspace_id: 'a', user_id: 'ada', version: 2_000 };
  await query.insert('user_deletions', [deletion]);
  await query.insert('pending_deletions', [{ ...deletion, stored_at: 1 }]);
  await wait(DELETIONS_FORGOTTEN_MS);
  expect((await query.get('/users/ada/activity')).status).toBe(404);
  const acme = await activity('/organizations/acme/activity');
  expect(acme).toMatchObject(fold([bob], acme));
  const back = anEvent({ userId: 'ada', timestampMs: nowMs, event: 'back', receivedAtUs: 3_000 });
  await storeAll([back]);
  const found = await activity('/users/ada/activity');
  expect(found).toMatchObject(fold([back], found));
  expect(found.firstSeenAt).toBe(new Date(nowMs).toISOString());
});

test('an unknown identifier, also one of another workspace, is not found, and a parameter is refused', async () => {
  await storeAll([anEvent({ userId: 'ada', groupId: 'acme' })]);
  for (const path of ['/users/acme/activity', '/organizations/ada/activity', '/users/nobody/activity']) {
    expect((await query.get(path)).status).toBe(404);
  }
  expect((await query.get('/users/ada/activity', 'b')).status).toBe(404);
  const { status, body } = await query.get('/users/ada/activity?startDate=2026-01-01');
  expect([status, body.errors.map(({ path }) => path)]).toEqual([400, ['startDate']]);
});
