import { setTimeout as wait } from 'node:timers/promises';
import { eventually } from '@sluice/shared/testing/eventually';
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
import { STATEMENTS } from './statements.ts';

prepareExpiry();

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
