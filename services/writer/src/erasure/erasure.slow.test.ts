import { mergeParts } from '@sluice/shared/clickhouse/testing/merge-parts';
import type { ChangeRow } from '@sluice/shared/rows';
import { visitorOf } from '@sluice/shared/rows/deleted-person';
import { eventually } from '@sluice/shared/testing/eventually';
import { ClickHouseSession } from '@sluice/storage/clickhouse/clickhouse-session';
import { expect, test } from 'vitest';
import { STATEMENTS as BATCH_STATEMENTS } from '../batch/statements.ts';
import {
  count,
  DELETED_US,
  daysOf,
  db,
  deletionOf,
  erase,
  erasure,
  NOT_ERASED,
  prepareErasures,
  seenAt,
} from '../testing/erasures.ts';
import { batchOf, changeRow, eventRow, messages, NOON } from '../testing/store.ts';
import { forgetUsersWithoutRows } from './deleted-rows.ts';
import { STATEMENTS } from './statements.ts';

prepareErasures();

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

test('a deletion up to a time in the past leaves the times since then', async () => {
  await db.store(batchOf([seenAt('back', -9, -5), seenAt('back', 1, 5)]));
  await db.store(batchOf([seenAt('back', 3, 15)]));
  await mergeParts(db.client, 'entities');
  await db.store(batchOf([], [deletionOf('back')]));
  await erase();
  expect(await daysOf('back')).toEqual({ back: [1, 3] });
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

/** Stores events of some months, in as many parts, and 16 of them of the user `gone`. */
async function storeMany(rows: number, months: number): Promise<void> {
  await db.client.command({ query: 'TRUNCATE TABLE events' });
  await db.client.command({
    query: `INSERT INTO events (workspace_id, timestamp, uuid, event, user_id, received_at)
      SELECT 'test', toDateTime64('2025-06-01', 3, 'UTC') + toIntervalMonth(number % {months:UInt8}) + toIntervalSecond(number), generateUUIDv4(number), 'e',
        if(number < 16, 'gone', toString(number)), toDateTime64('2025-06-01', 6, 'UTC') + toIntervalMonth(number % {months:UInt8}) + toIntervalSecond(number)
      FROM numbers({rows:UInt64}) SETTINGS max_insert_block_size = 1000000`,
    query_params: { rows, months },
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
    await storeMany(rows, 8);
    read.push({ gone: await find(['gone']), without: await find(without) });
  }
  const [few, many] = read;
  expect(few?.gone).toBeGreaterThanOrEqual(16);
  expect(many?.gone).toBeLessThanOrEqual((few?.gone ?? 0) * 1.3);
  expect(many?.without).toBeLessThanOrEqual((few?.without ?? 0) + 1_000);
});

test('after an erasure ClickHouse counts by the sorting key as before, and no row is masked', async () => {
  await storeMany(20_000, 1);
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
