import { readRetention, recordRetention } from '@sluice/storage/clickhouse/retention-settings';
import { expect, test } from 'vitest';
import {
  db,
  erase,
  eventAt,
  expiryWith,
  keepForAll,
  monthBefore,
  prepareExpiry,
  store,
  stored,
} from '../testing/expiry.ts';
import { erasureTimes } from './expired-events.ts';

const DAY_MS = 86_400_000;

prepareExpiry();

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
