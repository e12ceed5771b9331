import { randomUUID } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import { createLogger } from '@sluice/shared/base/log';
import { createDatabase } from '@sluice/shared/clickhouse/testing/test-database';
import { ALL_OTHERS, keptFromMs } from '@sluice/shared/config/retention-days';
import type { EventRow } from '@sluice/shared/rows';
import { eventually } from '@sluice/shared/testing/eventually';
import { readRetention, recordRetention } from '@sluice/storage/clickhouse/retention-settings';
import { afterAll, beforeAll, beforeEach, expect, inject, onTestFinished, test } from 'vitest';
import { batchOf, createTestStore, eventRow, type TestStore } from '../testing/store.ts';
import { ExpiredEvents, type ExpiryConfig, erasureTimes } from './expired-events.ts';
import { STATEMENTS } from './statements.ts';

const DAY_MS = 86_400_000;

let db: TestStore;

beforeAll(async () => {
  db = await createTestStore(inject('clickhouseUrl'), createDatabase);
  // ClickHouse would otherwise remove empty parts after half a minute. Only a table that is attached again does so at once.
  const atOnce = 'cleanup_delay_period = 1, max_cleanup_delay_period = 1, cleanup_delay_period_random_add = 0';
  await db.client.command({ query: `ALTER TABLE events MODIFY SETTING ${atOnce}` });
  for (const action of ['DETACH', 'ATTACH']) await db.client.command({ query: `${action} TABLE events` });
});
afterAll(() => db.close());

beforeEach(async () => {
  daysForAll = undefined;
  for (const table of ['events', 'retention']) await db.client.command({ query: `TRUNCATE TABLE ${table}` });
});

/** EVENTS_RETENTION_DAYS of all writers. */
let daysForAll: number | undefined;

async function keepForAll(days: number): Promise<void> {
  daysForAll = days;
  await recordRetention(db.client, ALL_OTHERS, days);
}

const failures = { inc: () => undefined };

function expiryWith(config: Partial<ExpiryConfig>, client = db.client): ExpiredEvents {
  const often = { ERASURE_INTERVAL_MS: 50, RETENTION_INTERVAL_MS: 100, RETENTION_DELAY_MS: 0 };
  const expiry = new ExpiredEvents(
    { ...often, EVENTS_RETENTION_DAYS: daysForAll, ...config },
    client,
    randomUUID(),
    createLogger('test', 'silent'),
    failures,
  );
  onTestFinished(() => expiry.stop());
  expiry.setOwner(true);
  return expiry;
}

/** Erases what is to be erased by the settings as they are. */
async function erase(delayMs = 0): Promise<void> {
  await expiryWith({ RETENTION_DELAY_MS: delayMs }).takeRound();
}

/** An event that arrived at once, unless `row` says when. */
function eventAt(timestamp: number, row: Partial<EventRow> = {}): EventRow {
  return eventRow({ timestamp, ...row });
}

/** The first millisecond of the month that lies some months before the one of which the first day is kept. */
function monthBefore(days: number, months: number): number {
  const kept = new Date(keptFromMs(days, Date.now()));
  return Date.UTC(kept.getUTCFullYear(), kept.getUTCMonth() - months);
}

const stored = async () =>
  (await db.read<{ event: string }>('SELECT event FROM events ORDER BY event')).map(({ event }) => event);

/** Stores each event in an insert of its own. */
async function store(...rows: readonly EventRow[]): Promise<void> {
  for (const row of rows) await db.store(batchOf([row]));
}

test('of two workspaces in the same partition, each is erased by its own retention, up to the millisecond', async () => {
  const first = monthBefore(40, 0);
  const [a, b] = ['a', 'b'].map((workspace_id) => ({ workspace_id }));
  await store(
    eventAt(first - 1, { ...a, event: 'gone: the last of a month that expired' }),
    eventAt(first, { ...a, event: 'kept: its month has not expired as a whole' }),
    eventAt(first - 1, { ...b, event: 'kept: another workspace' }),
    eventAt(monthBefore(40, 2), { ...a, event: 'gone' }),
    // Late history, in a partition by year.
    eventAt(monthBefore(40, 14), { ...a, event: 'gone: late', received_at: Date.now() * 1_000 }),
    eventAt(monthBefore(40, 14), { ...b, event: 'kept: late', received_at: Date.now() * 1_000 }),
    eventAt(Date.now(), { ...a, event: 'kept: new' }),
  );
  await recordRetention(db.client, 'a', 40);
  await erase();
  expect((await stored()).filter((event) => event.startsWith('gone'))).toEqual([]);
  expect(await stored()).toHaveLength(4);
});

test('of a partition in which every event has expired, nothing is left', async () => {
  await store(
    ...['a', 'b'].flatMap((workspace_id) => [
      eventAt(monthBefore(40, 3), { workspace_id, event: 'old' }),
      eventAt(monthBefore(40, 30), { workspace_id, event: 'late', received_at: Date.now() * 1_000 }),
      eventAt(Date.now(), { workspace_id, event: 'new' }),
    ]),
  );
  await keepForAll(40);
  await erase();
  expect(await stored()).toEqual(['new', 'new']);
  const parts = "system.parts WHERE database = currentDatabase() AND table = 'events' AND active";
  const partitions = async () => await db.read(`SELECT DISTINCT partition FROM ${parts}`);
  await eventually(partitions).toHaveLength(1);
});

test('a workspace that keeps its events for longer keeps them in the partition of the others', async () => {
  const old = { event: 'old', workspace_id: 'a' };
  await store(eventAt(monthBefore(40, 3), old), eventAt(monthBefore(40, 3), { ...old, workspace_id: 'long' }));
  await store(eventAt(Date.now(), { event: 'new' }));
  await keepForAll(40);
  await recordRetention(db.client, 'long', 400);
  await erase();
  expect(await db.read("SELECT workspace_id FROM events WHERE event = 'old'")).toEqual([{ workspace_id: 'long' }]);
});

test('nothing is erased by a setting that is younger than RETENTION_DELAY_MS, nor by the one that it replaced', async () => {
  await store(eventAt(monthBefore(40, 3), { event: 'old' }), eventAt(Date.now(), { event: 'new' }));
  const setAgo = async (days: number, ago: string) =>
    await db.client.command({
      query: `INSERT INTO retention SELECT 'test', ${days}, now64(6) - INTERVAL ${ago}`,
    });
  await keepForAll(40);
  await erase(3_600_000);
  expect(await stored()).toHaveLength(2);

  await setAgo(40, '50 HOUR');
  // Its operator has taken it back in time.
  await setAgo(0, '1 HOUR');
  await erase(7_200_000);
  expect(await stored()).toHaveLength(2);

  await setAgo(40, '30 MINUTE');
  await erase(7_200_000);
  expect(await stored()).toHaveLength(2);
  await erase(600_000);
  expect(await stored()).toEqual(['new']);
});

test('what a retention that was made longer during a round would show is not erased', async () => {
  await store(eventAt(monthBefore(40, 3), { event: 'old' }));
  await recordRetention(db.client, 'test', 40);
  const client = new Proxy(db.client, {
    get(target, name) {
      if (name !== 'query') return Reflect.get(target, name).bind(target);
      return async (query: Parameters<typeof target.query>[0]) => {
        const result = await target.query(query);
        if (query.query === STATEMENTS['find-expired-events-of-others'].sql)
          await recordRetention(db.client, 'test', 400);
        return result;
      };
    },
  });
  await expiryWith({}, client).takeRound();
  expect(await stored()).toContain('old');
  await recordRetention(db.client, 'test', 40);
  await erase();
  expect(await stored()).not.toContain('old');
});

test('an expired event that arrives late, or is sent again after it was erased, is stored once, and erased again', async () => {
  const event = eventAt(monthBefore(40, 3), { event: 'old' });
  await store(event, eventAt(Date.now(), { event: 'new' }));
  await recordRetention(db.client, 'test', 40);
  await erase();
  expect(await stored()).toEqual(['new']);
  await store(event, event);
  expect(await stored()).toEqual(['new', 'old']);
  await erase();
  expect(await stored()).toEqual(['new']);
});

test('the owner alone erases, in rounds; a removal that failed is ended, and another mutation is waited for', async () => {
  const old = monthBefore(40, 3);
  await store(eventAt(old, { event: 'old' }), eventAt(Date.now(), { event: 'new' }));
  await recordRetention(db.client, 'test', 40);
  const partition = new Date(old).toISOString().slice(0, 7).replace('-', '');
  await db.client.command({
    query: `${STATEMENTS['erase-expired-events'].sql} AND throwIf(event = 'old')`,
    query_params: { workspaces: ['test'], beforeMs: [Date.now()], othersBeforeMs: 0, partition },
    clickhouse_settings: { mutations_sync: '0' },
  });
  const expiry = expiryWith({});
  expiry.setOwner(false);
  await expect(expiry.takeRound()).rejects.toThrow('no longer erases');
  expiry.start();
  expiry.setOwner(true);
  await eventually(stored).toEqual(['new']);

  await store(eventAt(old, { event: 'again' }));
  await db.client.command({ query: 'SYSTEM STOP MERGES events' });
  await db.client.command({
    query: "ALTER TABLE events UPDATE traits = '{}' WHERE event = 'new'",
    clickhouse_settings: { mutations_sync: '0' },
  });
  await expect(expiryWith({}).takeRound()).rejects.toThrow('still removing rows');
  await db.client.command({ query: 'SYSTEM START MERGES events' });
  await eventually(stored).toEqual(['new']);
});

test('rounds have their interval, and a writer that becomes the owner begins with one', async () => {
  const old = monthBefore(40, 3);
  await store(eventAt(old, { event: 'old' }), eventAt(Date.now(), { event: 'new' }));
  await recordRetention(db.client, 'test', 40);
  const expiry = expiryWith({ RETENTION_INTERVAL_MS: 3_600_000 });
  expiry.start();
  await eventually(stored).toEqual(['new']);
  await store(eventAt(old, { event: 'old' }));
  await wait(500);
  expect(await stored()).toEqual(['new', 'old']);
  expiry.setOwner(false);
  expiry.setOwner(true);
  await eventually(stored).toEqual(['new']);
});

test('the newest setting counts, also after the clock of ClickHouse was set back', async () => {
  await db.client.command({ query: "INSERT INTO retention SELECT 'a', 5, now64(6) + INTERVAL 1 HOUR" });
  await recordRetention(db.client, 'a', 6);
  expect(await readRetention(db.client)).toMatchObject([{ workspace: 'a', days: 6 }]);
});

test('a setting that is recorded again keeps its age', async () => {
  await recordRetention(db.client, 'a', undefined);
  expect(await readRetention(db.client)).toEqual([]);
  await recordRetention(db.client, 'a', 5);
  const setAt = async () => await db.read('SELECT workspace_id, days, set_at FROM retention FINAL');
  const [first] = await setAt();
  await recordRetention(db.client, 'a', 5);
  expect(await setAt()).toEqual([first]);
  await recordRetention(db.client, 'a', 6);
  expect(await setAt()).toMatchObject([{ workspace_id: 'a', days: 6 }]);
});

test('while writers have different days for all, nothing is erased by them, but by the days of a workspace', async () => {
  const old = monthBefore(40, 3);
  await store(eventAt(old, { event: 'kept' }), eventAt(old, { event: 'own', workspace_id: 'a' }));
  await recordRetention(db.client, 'a', 40);
  await keepForAll(40);
  for (const days of [undefined, 400]) await expiryWith({ EVENTS_RETENTION_DAYS: days }).takeRound();
  expect(await stored()).toEqual(['kept']);
  await erase();
  expect(await stored()).toEqual([]);
});

test('while the clock of ClickHouse is wrong, nothing is erased', async () => {
  await store(eventAt(Date.now(), { event: 'new' }));
  await keepForAll(40);
  const ahead = new Proxy(db.client, {
    get(target, name) {
      if (name !== 'query') return Reflect.get(target, name).bind(target);
      return async (query: Parameters<typeof target.query>[0]) =>
        await target.query({ ...query, query: query.query.replaceAll('now64(3)', '(now64(3) + INTERVAL 900 DAY)') });
    },
  });
  await expect(expiryWith({}, ahead).takeRound()).rejects.toThrow(/the clock of ClickHouse is 777\d{5} s ahead/);
  expect(await stored()).toEqual(['new']);
});

test('what is erased is what had expired as a whole month RETENTION_DELAY_MS ago', () => {
  const timeAt = (now: string, delayMs: number) =>
    erasureTimes([{ workspace: '', days: 30, ageMs: 9e9, nowMs: Date.parse(now) }], delayMs).othersMs;
  const january = Date.UTC(2026, 0);
  const february = Date.UTC(2026, 1);
  // On the 3rd of March, the events from the 1st of February on are kept.
  expect(timeAt('2026-03-02T23:59:59.999Z', 0)).toBe(january);
  expect(timeAt('2026-03-03T00:00:00.000Z', 0)).toBe(february);
  expect(timeAt('2026-03-03T23:59:59.999Z', DAY_MS)).toBe(january);
  expect(timeAt('2026-03-04T00:00:00.000Z', DAY_MS)).toBe(february);
});
