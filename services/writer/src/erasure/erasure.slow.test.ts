import { randomUUID } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import { createLogger } from '@sluice/shared/base/log';
import type { ClickHouseClient } from '@sluice/shared/clickhouse/client';
import { mergeParts } from '@sluice/shared/clickhouse/testing/merge-parts';
import { createDatabase } from '@sluice/shared/clickhouse/testing/test-database';
import type { ChangeRow } from '@sluice/shared/rows';
import { visitorOf } from '@sluice/shared/rows/deleted-person';
import { eventually } from '@sluice/shared/testing/eventually';
import { ClickHouseSession } from '@sluice/storage/clickhouse/clickhouse-session';
import { afterAll, afterEach, beforeAll, beforeEach, expect, inject, onTestFinished, test } from 'vitest';
import { STATEMENTS as BATCH_STATEMENTS } from '../batch/statements.ts';
import { batchOf, changeRow, createTestStore, eventRow, messages, NOON, type TestStore } from '../testing/store.ts';
import { forgetUsersWithoutRows } from './deleted-rows.ts';
import { Erasure } from './erasure.ts';
import { STATEMENTS } from './statements.ts';

let db: TestStore;
const failures = { inc: () => undefined };
let erasure: Erasure;

const DELETED_US = NOON * 1_000;

beforeAll(async () => {
  db = await createTestStore(inject('clickhouseUrl'), createDatabase);
});
afterAll(() => db.close());

beforeEach(async () => {
  for (const table of [
    'events',
    'entities',
    'entity_properties',
    'user_sightings',
    'user_deletions',
    'pending_deletions',
    'dead_letters',
  ])
    await db.client.command({ query: `TRUNCATE TABLE ${table}` });
  const config = { ERASURE_DELAY_MS: 0, ERASURE_INTERVAL_MS: 50, ERASURE_GATHER_MS: 0 };
  erasure = new Erasure(config, db.writerClient, randomUUID(), createLogger('test', 'silent'), failures);
  erasure.setOwner(true);
});
afterEach(() => erasure.stop());

function deletionOf(id: string, version = DELETED_US): ChangeRow {
  return changeRow({ id, operation: 'delete', version });
}

async function count(query: string): Promise<number> {
  return (await db.read<{ found: number }>(`SELECT count() AS found FROM ${query}`))[0]?.found ?? Number.NaN;
}

/** Deleted users who are not erased yet. */
const NOT_ERASED = '(SELECT DISTINCT user_id FROM pending_deletions)';

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

test('of a deleted visitor the events and dead letters without a user are erased, and what came after the deletion stays', async () => {
  const before = { anonymous_id: 'v', received_at: DELETED_US };
  const gone = [eventRow(before), eventRow({ ...before, timestamp: NOON - 60 * 86_400_000 })];
  const kept = [
    eventRow({ ...before, user_id: 'jane' }),
    eventRow({ ...before, received_at: DELETED_US + 1 }),
    eventRow({ ...before, workspace_id: 'other' }),
    eventRow({ received_at: DELETED_US, anonymous_id: 'w' }),
    eventRow({ received_at: DELETED_US, user_id: 'v' }),
    eventRow({ received_at: DELETED_US }),
  ];
  await db.store(batchOf([...gone, ...kept]));
  const letter = (id: string, row: object) => ({ id, kind: 'rejected', format: '1', row: JSON.stringify(row) });
  const row = { workspace_id: 'test', received_at: DELETED_US };
  await db.client.insert({
    table: 'dead_letters',
    values: [
      letter('gone', { ...row, anonymous_id: 'v' }),
      letter('of a user', { ...row, anonymous_id: 'v', user_id: 'jane' }),
      { ...letter('cut off', {}), row: JSON.stringify({ ...row, anonymous_id: 'v', call: '{' }).slice(0, -3) },
      letter('of nobody', row),
    ],
    format: 'JSONEachRow',
  });
  await db.store(batchOf([], [deletionOf(visitorOf('v')), deletionOf(visitorOf('nobody'))]));
  erasure.start();
  await eventually(() => count(NOT_ERASED)).toBe(0);
  const uuids = (await db.read<{ uuid: string }>('SELECT uuid FROM events')).map(({ uuid }) => uuid);
  expect(uuids.sort()).toEqual(kept.map(({ uuid }) => uuid).sort());
  expect(await db.read('SELECT id FROM dead_letters ORDER BY id')).toEqual([{ id: 'of a user' }, { id: 'of nobody' }]);
});

test('only the deletion is left of a deleted user, and what came after it of a user who came back', async () => {
  const seen = (id: string, version: number) =>
    changeRow({ id, operation: 'seen', version, group_id: version < DELETED_US ? 'seen before' : 'seen after' });
  const set = (id: string, version: number) =>
    changeRow({ id, operation: 'set', property: `at ${version}`, value: '1', version });
  const event = (user_id: string, received_at: number) =>
    eventRow({ user_id, received_at, group_id: received_at < DELETED_US ? 'before' : 'after' });
  for (const version of [DELETED_US - 5, DELETED_US + 5]) {
    const users = version < DELETED_US ? ['gone', 'back', 'other'] : ['back', 'other'];
    await db.store(
      batchOf(
        users.map((user) => event(user, version)),
        users.flatMap((user) => [seen(user, version), set(user, version)]),
      ),
    );
  }
  await db.store(
    batchOf(
      [],
      ['gone', 'back'].map((user) => deletionOf(user)),
    ),
  );
  erasure.start();
  await eventually(() => count(NOT_ERASED)).toBe(0);

  const left = async (table: string, column: string) =>
    await db.read(`SELECT ${column} AS user, count() AS found FROM ${table} GROUP BY user ORDER BY user`);
  const remaining = [
    { user: 'back', found: 1 },
    { user: 'other', found: 2 },
  ];
  expect(await left('events', 'user_id')).toEqual(remaining);
  expect(await left('user_sightings', 'user_id')).toEqual(remaining);
  expect(await left('entity_properties', 'id')).toEqual(remaining);
  expect(await left("entities FINAL WHERE kind = 'user'", 'id')).toEqual([
    { user: 'back', found: 1 },
    { user: 'other', found: 1 },
  ]);
  const remainingMemberships = [
    { user: 'back', organizations: ['after', 'seen after'] },
    { user: 'other', organizations: ['after', 'before', 'seen after', 'seen before'] },
  ];
  const memberships = async (kind: string, user: string, organization: string) =>
    await db.read(`SELECT ${user} AS user, arraySort(groupUniqArray(${organization})) AS organizations
      FROM entities WHERE kind = '${kind}' GROUP BY user ORDER BY user`);
  expect(await memberships('membership', 'id', 'other_id')).toEqual(remainingMemberships);
  expect(await memberships('member', 'other_id', 'id')).toEqual(remainingMemberships);
  // By this text, a removal that failed is told from other mutations.
  const removals = "system.mutations WHERE database = currentDatabase() AND startsWith(command, '(DELETE ')";
  expect(await count(`${removals} AND position(command, 'indexOf(arrayZip(') > 0`)).toBe(await count(removals));
});

const DAY_MS = 86_400_000;

/** An event of a user, so many days after noon, and received so many microseconds after the deletion. */
function seenAt(user_id: string, day: number, received: number) {
  return eventRow({ user_id, timestamp: NOON + day * DAY_MS, received_at: DELETED_US + received });
}

/** When users were seen, in days since noon, as their rows say whatever is merged. */
async function daysOf(...users: string[]): Promise<Record<string, readonly [first: number, last: number]>> {
  const days = (time: string) => `dateDiff('day', toDateTime64(${NOON / 1_000}, 3, 'UTC'), ${time})`;
  const rows = await db.read<{ id: string; first: number; last: number }>(
    `SELECT id, ${days('min(first_seen_at)')} AS first, ${days('max(last_seen_at)')} AS last FROM entities
     WHERE kind = 'user' AND id IN ('${users.join("','")}') GROUP BY id`,
  );
  return Object.fromEntries(rows.map(({ id, first, last }) => [id, [first, last]]));
}

async function erase(): Promise<void> {
  erasure.start();
  await eventually(() => count(NOT_ERASED)).toBe(0);
}

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

test('a deletion up to a time in the past leaves the times since then', async () => {
  await db.store(batchOf([seenAt('back', -9, -5), seenAt('back', 1, 5)]));
  await db.store(batchOf([seenAt('back', 3, 15)]));
  await mergeParts(db.client, 'entities');
  await db.store(batchOf([], [deletionOf('back')]));
  await erase();
  expect(await daysOf('back')).toEqual({ back: [1, 3] });
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
  const interrupted = new Erasure(config, client, randomUUID(), createLogger('test', 'silent'), failures);
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

test("a deleted user's dead letters are erased, whole rows and broken ones, and no others", async () => {
  const unknownField = { colour: 'red' };
  const event = (user_id: string, received_at: number, rest: object = unknownField) =>
    JSON.stringify({ ...eventRow({ user_id, received_at }), ...rest });
  const change = (row: Pick<ChangeRow, 'id'> & Partial<ChangeRow>) =>
    JSON.stringify({ ...changeRow({ operation: 'seen', version: DELETED_US, ...row }), ...unknownField });
  const name = 'a "quoted" \\ name';
  const gone = {
    events: [event(name, DELETED_US), event(name, DELETED_US - 1).slice(0, -1), event(name, 1, { b: '\ud800' })],
    changes: [change({ id: name }), change({ id: name }).slice(0, -1)],
  };
  const kept = {
    events: [
      event(name, DELETED_US + 1),
      event('other', DELETED_US),
      event('other', DELETED_US, { properties: { user_id: name }, ...unknownField }),
      JSON.stringify({ ...eventRow({ user_id: name, workspace_id: 'another' }), ...unknownField }),
      'no json',
    ],
    changes: [change({ id: name, kind: 'organization' }), change({ id: 'other' })],
  };
  const { deadLetters } = await db.store({
    events: messages('events', [...gone.events, ...kept.events]),
    changes: messages('changes', [...gone.changes, ...kept.changes]),
    deadLetters: [],
  });
  expect(deadLetters).toHaveLength(12);
  await db.store(batchOf([], [deletionOf(name)]));
  erasure.start();
  await eventually(() => count(NOT_ERASED)).toBe(0);
  const rows = await db.read<{ row: string }>('SELECT row FROM dead_letters FINAL');
  expect(rows.map(({ row }) => row).sort()).toEqual([...kept.events, ...kept.changes].sort());
});

test('deletions with rows are gathered and erased together; those without rows wait for nothing', async () => {
  const gathering = { ERASURE_DELAY_MS: 0, ERASURE_INTERVAL_MS: 50, ERASURE_GATHER_MS: 3_600_000 };
  await using started = new AsyncDisposableStack();
  const patient = new Erasure(gathering, db.writerClient, randomUUID(), createLogger('test', 'silent'), failures);
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
  const patient = new Erasure(gathering, db.writerClient, randomUUID(), createLogger('test', 'silent'), failures);
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
  const unhurried = new Erasure(slow, db.writerClient, randomUUID(), createLogger('test', 'silent'), failures);
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

test('a later deletion of a user stays pending when an earlier one is forgotten', async () => {
  const pass = [{ workspace_id: 'test', user_id: 'back', deleted_version: DELETED_US, stored_ms: 0 }];
  await db.store(batchOf([], [deletionOf('back')]));
  // It arrives after the earlier one was found to be due.
  await db.store(batchOf([], [deletionOf('back', DELETED_US + 5)]));
  const session = new ClickHouseSession(db.writerClient, 'test', 20_000);
  await forgetUsersWithoutRows(session, pass);
  await session.close();
  const pending = "SELECT max(version) AS version FROM pending_deletions WHERE user_id = 'back'";
  expect(await db.read(pending)).toEqual([{ version: DELETED_US + 5 }]);
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
  const logging = new Erasure(config, db.writerClient, randomUUID(), logger, failures);
  onTestFinished(() => logging.stop());
  logging.setOwner(true);
  logging.start();
  await eventually(() => lines.join('')).toMatch(/mutation_\d+\.txt of the table events fails.*KILL MUTATION/);
  await db.client.command({ query: 'INSERT INTO mended SELECT now()' });
  await eventually(() => count(NOT_ERASED)).toBe(0);
  expect(await db.read('SELECT user_id, traits FROM events')).toEqual([{ user_id: 'other', traits: '{"a":1}' }]);
});

/** Stores `rows` events of eight months, in eight parts, and 16 of them of the user `gone`. */
async function storeMany(rows: number): Promise<void> {
  await db.client.command({ query: 'TRUNCATE TABLE events' });
  await db.client.command({
    query: `INSERT INTO events (workspace_id, timestamp, uuid, event, user_id, received_at)
      SELECT 'test', toDateTime64('2025-06-01', 3, 'UTC') + toIntervalMonth(number % 8) + toIntervalSecond(number), generateUUIDv4(number), 'e',
        if(number < 16, 'gone', toString(number)), toDateTime64('2025-06-01', 6, 'UTC') + toIntervalMonth(number % 8) + toIntervalSecond(number)
      FROM numbers({rows:UInt64}) SETTINGS max_insert_block_size = 1000000`,
    query_params: { rows },
  });
}

/** How many rows of all tables ClickHouse reads for a query. */
async function rowsRead(query: string, query_params: Record<string, unknown> = {}): Promise<number> {
  const result = await db.client.query({ query, query_params, format: 'JSON' });
  return (await result.json<unknown>()).statistics?.rows_read ?? Number.NaN;
}

test('what ClickHouse reads to find the rows of deleted users does not grow with the events', async () => {
  const find = async (users: string[]) =>
    await rowsRead(STATEMENTS['find-deleted-rows'].sql, {
      workspaces: users.map(() => 'test'),
      users,
      versions: users.map(() => DELETED_US),
    });
  const without = Array.from({ length: 200 }, (_, index) => `without rows ${index}`);
  const read: { gone: number; without: number }[] = [];
  for (const rows of [20_000, 160_000]) {
    await storeMany(rows);
    read.push({ gone: await find(['gone']), without: await find(without) });
  }
  const [few, many] = read;
  expect(few?.gone).toBeGreaterThanOrEqual(16);
  expect(many?.gone).toBeLessThanOrEqual((few?.gone ?? 0) * 1.3);
  expect(many?.without).toBeLessThanOrEqual((few?.without ?? 0) + 1_000);
});

test('after an erasure ClickHouse counts by the sorting key as before, and no row is masked', async () => {
  await storeMany(20_000);
  const counting = "SELECT count() FROM events WHERE workspace_id = 'test'";
  const before = await rowsRead(counting);
  await db.store(batchOf([], [deletionOf('gone')]));
  erasure.start();
  await eventually(() => count(NOT_ERASED)).toBe(0);
  expect(await count('events')).toBe(20_000 - 16);
  expect(await rowsRead(counting)).toBeLessThanOrEqual(before);
  const masked =
    "system.parts WHERE database = currentDatabase() AND table = 'events' AND active AND has_lightweight_delete";
  expect(await count(masked)).toBe(0);
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

test('what ClickHouse reads to find due deletions does not grow with those that ever were', async () => {
  const past = async (from: number, to: number) =>
    await db.client.command({
      query: `INSERT INTO user_deletions SELECT 'test', toString(number), 1 FROM numbers(${from}, ${to - from})`,
    });
  const dueParameters = { delayMs: 0, usersMax: 10, afterMs: 0, afterWorkspace: '', afterUser: '' };
  const findDue = () => rowsRead(STATEMENTS['find-due-erasures'].sql, dueParameters);
  await db.store(batchOf([], [deletionOf('gone')]));
  await past(0, 10_000);
  // The statement of a batch of 20 users, without the temporary table that it fills.
  const [, lookUpSql = ''] = BATCH_STATEMENTS['find-deletions'].sql.split('ENGINE = Memory AS\n');
  const lookUp = () => rowsRead(lookUpSql);
  const staged = "ENGINE = Memory AS SELECT 'test' AS workspace_id, toString(number * 300) AS";
  await db.client.command({ query: `CREATE TABLE staged_events ${staged} person FROM numbers(20)` });
  const change = "'user' AS kind, 'seen' AS operation, toUInt64(1) AS version";
  await db.client.command({ query: `CREATE TABLE staged_changes ${staged} id, ${change} FROM numbers(20)` });
  await mergeParts(db.client, 'user_deletions');
  const few = [await findDue(), await lookUp()];
  await past(10_000, 80_000);
  await mergeParts(db.client, 'user_deletions');
  const [due, found] = [await findDue(), await lookUp()];
  expect(due).toBe(few[0]);
  // At most two granules of 128 rows for each of 20 users, besides the staged rows.
  expect(found).toBeLessThanOrEqual(20 * 256 + 200);
});
