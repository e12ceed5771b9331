import { randomUUID } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import { createLogger } from '@sluice/shared/base/log';
import type { ClickHouseClient } from '@sluice/shared/clickhouse/client';
import { mergeParts } from '@sluice/shared/clickhouse/testing/merge-parts';
import { eventually } from '@sluice/shared/testing/eventually';
import { ClickHouseSession } from '@sluice/storage/clickhouse/clickhouse-session';
import { expect, onTestFinished, test } from 'vitest';
import {
  count,
  DAY_MS,
  DELETED_US,
  daysOf,
  db,
  deletionOf,
  erase,
  erasure,
  failures,
  NOT_ERASED,
  prepareErasures,
  seenAt,
} from '../testing/erasures.ts';
import { batchOf, changeRow, eventRow, NOON } from '../testing/store.ts';
import { Erasure } from './erasure.ts';
import { STATEMENTS } from './statements.ts';

prepareErasures();

test('deletions of the longest identifiers are erased, any number of them', async () => {
  const users = [..."😀'\\\0ä"].flatMap((character) =>
    Array.from({ length: 20 }, (_, index) => character.repeat(508) + String(index)),
  );
  await db.store(batchOf(users.map((user_id) => eventRow({ user_id, received_at: DELETED_US }))));
  await db.store(
    batchOf(
      [],
      users.map((user) => deletionOf(user)),
    ),
  );
  expect(await count(NOT_ERASED)).toBe(100);
  erasure.start();
  await eventually(() => count(NOT_ERASED)).toBe(0);
  expect(await count('events')).toBe(0);
});

test('a deletion that cannot be erased does not block the others', async () => {
  // The erasure's statements cannot take this version.
  await db.client.command({
    query: `INSERT INTO pending_deletions (workspace_id, user_id, version, stored_at)
      VALUES ('test', 'poison', 18446744073709551615, '2020-01-01')`,
  });
  const users = Array.from({ length: 250 }, (_, index) => `user ${index}`);
  await db.store(
    batchOf(
      [],
      users.map((user) => deletionOf(user)),
    ),
  );
  erasure.start();
  await eventually(() => db.read(`SELECT user_id FROM ${NOT_ERASED}`)).toEqual([{ user_id: 'poison' }]);
});

test('what was set once before a deletion is erased, and what was set once after it stays', async () => {
  for (const version of [DELETED_US - 5, DELETED_US + 5]) {
    const changes = ['back', 'other'].map((id) =>
      changeRow({ id, operation: 'set_once', property: `at ${version}`, value: '1', version }),
    );
    await db.store(batchOf([], changes));
  }
  await db.store(batchOf([], [deletionOf('back')]));
  erasure.start();
  await eventually(() => count(NOT_ERASED)).toBe(0);
  expect(await db.read('SELECT DISTINCT id, property FROM entity_properties ORDER BY id, property')).toEqual([
    { id: 'back', property: `at ${DELETED_US + 5}` },
    { id: 'other', property: `at ${DELETED_US - 5}` },
    { id: 'other', property: `at ${DELETED_US + 5}` },
  ]);
});

test.each([true, false])(
  'users who came back are stored with the times since their deletion (merged: %s)',
  async (merged) => {
    const merge = async () => (merged ? await mergeParts(db.client, 'entities') : undefined);
    await db.store(batchOf([...['later', 'both', 'gone'].map((user) => seenAt(user, -9, -5)), seenAt('both', 9, -4)]));
    await db.store(batchOf([seenAt('earlier', 9, -5)]));
    // Their writers do not know the deletion: it goes another way.
    await db.store(
      batchOf([seenAt('both', 2, 5)], [changeRow({ id: 'seen', operation: 'seen', version: DELETED_US - 9 })]),
    );
    await db.store(batchOf([], [changeRow({ id: 'seen', operation: 'seen', version: DELETED_US + DAY_MS * 1_000 })]));
    await merge();
    const users = ['later', 'earlier', 'both', 'seen', 'gone'];
    await db.store(
      batchOf(
        [seenAt('both', 3, 6)],
        users.map((user) => deletionOf(user)),
      ),
    );
    await db.store(
      batchOf([seenAt('later', 1, 7), seenAt('earlier', -3, 7), seenAt('later', 4, 9), seenAt('gone', 5, 0)]),
    );
    await merge();
    await erase();
    expect(await daysOf(...users)).toEqual({ later: [1, 4], earlier: [-3, -3], both: [2, 3], seen: [1, 1] });
    await db.store(batchOf([seenAt('both', 0, 11), seenAt('seen', 8, 11)]));
    expect(await daysOf('both', 'seen')).toEqual({ both: [0, 3], seen: [1, 8] });
  },
);

test('who was deleted again counts from the last deletion', async () => {
  await db.store(batchOf([seenAt('back', -9, -5)], [deletionOf('back')]));
  await db.store(batchOf([seenAt('back', -8, 5), seenAt('back', 8, 15)]));
  await mergeParts(db.client, 'entities');
  await db.store(batchOf([seenAt('back', 1, 16)], [deletionOf('back', DELETED_US + 10)]));
  // What is deleted up to a time in the past changes nothing any more.
  await db.store(batchOf([seenAt('back', 2, 17)], [deletionOf('back', DELETED_US - 50)]));
  await erase();
  expect(await daysOf('back')).toEqual({ back: [1, 8] });
});

test('a user who came back is never without a row, however often the erasure is interrupted', async () => {
  await db.store(batchOf([seenAt('back', -9, -5)]));
  await db.store(batchOf([seenAt('back', 1, 5)]));
  await mergeParts(db.client, 'entities');
  await db.store(batchOf([], [deletionOf('back')]));
  const pass = { workspaces: ['test'], users: ['back'], versions: [DELETED_US] };
  const session = new ClickHouseSession(db.writerClient, 'test', 20_000);
  for (let time = 0; time < 2; time += 1) await session.run(STATEMENTS['store-returned-users'], pass);
  expect(await daysOf('back')).toEqual({ back: [-9, 1] });
  expect(await count(`entities FINAL WHERE kind = 'user'`)).toBe(2);
  await erase();
  expect(await daysOf('back')).toEqual({ back: [1, 1] });
  // The erasure of a writer that was frozen meanwhile.
  await session.run(STATEMENTS['store-returned-users'], pass);
  await session.run(STATEMENTS['erase-entities'], { ...pass, replacedVersions: [DELETED_US + 5] });
  await session.close();
  expect(await daysOf('back')).toEqual({ back: [1, 1] });
});

/** The writer's client, which does something before it sends a statement. */
function clientThat(before: (sql: string) => Promise<void>): ClickHouseClient {
  const command: ClickHouseClient['command'] = async (params) => {
    await before(params.query);
    return await db.writerClient.command(params);
  };
  return new Proxy(db.writerClient, {
    get: (client, name) => (name === 'command' ? command : Reflect.get(client, name).bind(client)),
  });
}

test('what a writer of an older version stores of a user who came back, while others erase, is not lost', async () => {
  await db.store(batchOf([seenAt('back', -9, -5), seenAt('back', 1, 5)]));
  await db.store(batchOf([], [deletionOf('back')]));
  let stored = 0;
  const client = clientThat(async (sql) => {
    if (!sql.includes('ALTER TABLE entities DELETE') || stored > 0) return;
    stored += 1;
    // It does not look the deletion up, and has not stored its event yet.
    await db.client.command({
      query: `INSERT INTO entities (workspace_id, kind, id, first_seen_at, last_seen_at, version)
        SELECT 'test', 'user', 'back', toDateTime64(${NOON / 1_000}, 3, 'UTC') + INTERVAL 3 DAY AS seen_at, seen_at,
          ${DELETED_US + 15}`,
    });
    await mergeParts(db.client, 'entities');
  });
  await using started = new AsyncDisposableStack();
  const config = { ERASURE_DELAY_MS: 0, ERASURE_INTERVAL_MS: 50, ERASURE_GATHER_MS: 0 };
  const interrupted = new Erasure(config, {
    client: client,
    writerId: randomUUID(),
    logger: createLogger('test', 'silent'),
    failures,
  });
  started.defer(() => interrupted.stop());
  interrupted.setOwner(true);
  interrupted.start();
  await eventually(() => stored).toBe(1);
  await db.client.insert({ table: 'events', values: [seenAt('back', 3, 15)], format: 'JSONEachRow' });
  await eventually(() => count(NOT_ERASED)).toBe(0);
  expect(await daysOf('back')).toEqual({ back: [1, 3] });
});

test('of a user who came back whose events have expired, the time of the last change is kept', async () => {
  await db.store(batchOf([seenAt('back', -9, -5), seenAt('back', -8, DAY_MS * 1_000)]));
  await db.store(batchOf([], [deletionOf('back')]));
  await db.client.command({ query: 'TRUNCATE TABLE events' });
  await erase();
  expect(await daysOf('back')).toEqual({ back: [1, 1] });
});

test('an event that was sent again for another user stays, though merges and the erasure remove the deleted one', async () => {
  const uuid = randomUUID();
  const sentFor = (user_id: string, received: number) =>
    eventRow({ uuid, user_id, received_at: DELETED_US + received });
  const stored = async () => await db.read('SELECT user_id FROM events');
  await db.store(batchOf([sentFor('gone', -1)]));
  await db.store(batchOf([], [deletionOf('gone')]));
  await db.store(batchOf([sentFor('new', 1)]));
  expect(await stored()).toHaveLength(2);
  // The table keeps the newer of two rows with the same key.
  await mergeParts(db.client, 'events');
  expect(await stored()).toEqual([{ user_id: 'new' }]);
  await db.store(batchOf([sentFor('', 2), sentFor('gone', 3)]));
  erasure.start();
  await eventually(() => count(NOT_ERASED)).toBe(0);
  expect(await stored()).toEqual([{ user_id: 'new' }]);
});

test('deletions with rows are gathered and erased together; those without rows wait for nothing', async () => {
  const gathering = { ERASURE_DELAY_MS: 0, ERASURE_INTERVAL_MS: 50, ERASURE_GATHER_MS: 3_600_000 };
  await using started = new AsyncDisposableStack();
  const patient = new Erasure(gathering, {
    client: db.writerClient,
    writerId: randomUUID(),
    logger: createLogger('test', 'silent'),
    failures,
  });
  started.defer(() => patient.stop());
  const users = ['first', 'second', 'old'];
  await db.store(batchOf(users.map((user_id) => eventRow({ user_id, received_at: DELETED_US }))));
  await db.store(
    batchOf(
      [],
      ['first', 'second', 'nobody'].map((user) => deletionOf(user)),
    ),
  );
  patient.setOwner(true);
  patient.start();
  const pending = () => db.read(`SELECT user_id FROM ${NOT_ERASED} ORDER BY user_id`);
  await eventually(pending).toEqual([{ user_id: 'first' }, { user_id: 'second' }]);
  await wait(500);
  expect(await count('events')).toBe(3);
  // One that has waited for an hour.
  await db.client.command({
    query: `INSERT INTO pending_deletions SELECT 'test', 'old', ${DELETED_US}, now64(3) - INTERVAL 1 HOUR`,
  });
  await eventually(pending).toEqual([]);
  expect(await count('events')).toBe(0);
});

test('many deletions with rows are erased together before the oldest has waited', async () => {
  const gathering = { ERASURE_DELAY_MS: 0, ERASURE_INTERVAL_MS: 50, ERASURE_GATHER_MS: 3_600_000 };
  await using started = new AsyncDisposableStack();
  const patient = new Erasure(gathering, {
    client: db.writerClient,
    writerId: randomUUID(),
    logger: createLogger('test', 'silent'),
    failures,
  });
  started.defer(() => patient.stop());
  const users = Array.from({ length: 250 }, (_, index) => `user ${index}`);
  await db.store(batchOf(users.map((user_id) => eventRow({ user_id, received_at: DELETED_US }))));
  const deletions = users.map((user) => deletionOf(user));
  await db.store(batchOf([], deletions.slice(1)));
  patient.setOwner(true);
  patient.start();
  await wait(1_000);
  expect(await count('events')).toBe(250);
  await db.store(batchOf([], deletions.slice(0, 1)));
  await eventually(() => count(NOT_ERASED)).toBe(0);
  expect(await count('events')).toBe(0);
});

test('a deletion stays pending for a while after its rows were removed, for queries that began before', async () => {
  const slow = { ERASURE_DELAY_MS: 0, ERASURE_INTERVAL_MS: 3_000, ERASURE_GATHER_MS: 0 };
  await using started = new AsyncDisposableStack();
  const unhurried = new Erasure(slow, {
    client: db.writerClient,
    writerId: randomUUID(),
    logger: createLogger('test', 'silent'),
    failures,
  });
  started.defer(() => unhurried.stop());
  await db.store(batchOf([eventRow({ user_id: 'gone', received_at: DELETED_US })]));
  await db.store(batchOf([], [deletionOf('gone')]));
  unhurried.setOwner(true);
  unhurried.start();
  // The row in `entities` is removed last.
  await eventually(() => count("entities WHERE id = 'gone'"), { interval: 20 }).toBe(0);
  expect(await count(NOT_ERASED)).toBe(1);
  await eventually(() => count(NOT_ERASED)).toBe(0);
});

test('a removal that has not ended is not begun again, and the erasure goes on after it', async () => {
  const months = [0, 1, 2].map((month) => Date.UTC(2026, month, 5));
  const events = months.map((timestamp) => eventRow({ user_id: 'gone', timestamp, received_at: DELETED_US }));
  await db.store(batchOf(events));
  await db.store(batchOf([], [deletionOf('gone')]));
  const mutations = () => count("system.mutations WHERE database = currentDatabase() AND table = 'events'");
  const before = await mutations();
  // Merges and mutations stop in this table alone.
  await db.client.command({ query: 'SYSTEM STOP MERGES events' });
  await db.client.command({
    query: "ALTER TABLE events DELETE IN PARTITION ID '202601' WHERE user_id = 'gone'",
    clickhouse_settings: { mutations_sync: '0' },
  });
  erasure.start();
  await wait(500);
  expect(await mutations()).toBe(before + 1);
  await db.client.command({ query: 'SYSTEM START MERGES events' });
  await eventually(() => count(NOT_ERASED)).toBe(0);
  expect(await count('events')).toBe(0);
});

test('a removal that fails again and again is ended, and does not stop the erasure', async () => {
  await db.store(batchOf([eventRow({ user_id: 'gone', received_at: DELETED_US })]));
  await db.store(batchOf([], [deletionOf('gone')]));
  await db.client.command({
    query: `${STATEMENTS['erase-events'].sql} AND throwIf(user_id = 'gone')`,
    query_params: { workspaces: ['test'], users: ['gone'], versions: [DELETED_US], partition: '202603' },
    clickhouse_settings: { mutations_sync: '0' },
  });
  erasure.start();
  await eventually(() => count(NOT_ERASED)).toBe(0);
  expect(await count('events')).toBe(0);
});

test('a mutation of somebody else that fails is not ended; the log names it, and the erasure goes on after it', async () => {
  await db.client.command({ query: 'CREATE TABLE mended (at DateTime) ENGINE = Memory' });
  await db.store(batchOf([eventRow({ user_id: 'gone', received_at: DELETED_US }), eventRow({ user_id: 'other' })]));
  await db.store(batchOf([], [deletionOf('gone')]));
  await db.client.command({
    query: `ALTER TABLE events UPDATE traits = '{"a":1}' WHERE NOT throwIf((SELECT count() FROM mended) = 0)`,
    clickhouse_settings: { mutations_sync: '0' },
  });
  const lines: string[] = [];
  const logger = createLogger('test', 'warn', { write: (line) => lines.push(line) });
  const config = { ERASURE_DELAY_MS: 0, ERASURE_INTERVAL_MS: 50, ERASURE_GATHER_MS: 0 };
  const logging = new Erasure(config, { client: db.writerClient, writerId: randomUUID(), logger, failures });
  onTestFinished(() => logging.stop());
  logging.setOwner(true);
  logging.start();
  await eventually(() => lines.join('')).toMatch(/mutation_\d+\.txt of the table events fails.*KILL MUTATION/);
  await db.client.command({ query: 'INSERT INTO mended SELECT now()' });
  await eventually(() => count(NOT_ERASED)).toBe(0);
  expect(await db.read('SELECT user_id, traits FROM events')).toEqual([{ user_id: 'other', traits: '{"a":1}' }]);
});

test('counts by hour equal the events through repeated batches, merges and erasure', async () => {
  const months = [Date.UTC(2026, 0, 31, 23), NOON, NOON + 3_600_000];
  const events = Array.from({ length: 300 }, (_, index) =>
    eventRow({
      timestamp: (months[index % 3] ?? NOON) + index,
      event: `e${index % 4}`,
      user_id: index % 5 === 0 ? 'gone' : 'other',
      received_at: DELETED_US,
    }),
  );
  const counts = `SELECT event, toStartOfInterval(timestamp, toIntervalMillisecond(3600000)) AS hour,
      count() AS found, min(timestamp) AS first, max(timestamp) AS last
    FROM events GROUP BY event, hour ORDER BY event, hour SETTINGS`;
  const expectCounted = async (stored: number) => {
    const counted = await db.read<{ found: number }>(`${counts} force_optimize_projection = 1`);
    expect(counted).toEqual(await db.read(`${counts} optimize_use_projections = 0`));
    expect(counted.reduce((sum, { found }) => sum + found, 0)).toBe(stored);
  };
  for (const from of [0, 100, 200, 100, 0]) await db.store(batchOf(events.slice(from, from + 100)));
  await expectCounted(300);
  await mergeParts(db.client, 'events');
  await db.store(batchOf([eventRow({ user_id: 'gone', received_at: DELETED_US })]));
  await expectCounted(301);
  await db.store(batchOf([], [deletionOf('gone')]));
  erasure.start();
  await eventually(() => count(NOT_ERASED)).toBe(0);
  await expectCounted(240);
});
