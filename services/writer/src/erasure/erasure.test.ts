import { randomUUID } from 'node:crypto';
import { createLogger } from '@sluice/shared/log';
import type { ChangeRow } from '@sluice/shared/rows';
import { afterAll, afterEach, beforeAll, beforeEach, expect, inject, test } from 'vitest';
import { batchOf, changeRow, createTestStore, eventRow, messages, NOON, type TestStore } from '../testing/store.ts';
import { createErasure, type Erasure } from './erasure.ts';

let db: TestStore;
let erasure: Erasure;

const DELETED_US = NOON * 1_000;

beforeAll(async () => {
  db = await createTestStore(inject('clickhouseUrl'));
});
afterAll(() => db.close());

beforeEach(async () => {
  for (const table of ['events', 'entities', 'entity_properties', 'user_sightings', 'user_deletions', 'dead_letters'])
    await db.client.command({ query: `TRUNCATE TABLE ${table}` });
  const config = { ERASURE_DELAY_MS: 0, ERASURE_INTERVAL_MS: 50 };
  erasure = createErasure(config, db.client, randomUUID(), createLogger('test', 'silent'));
  erasure.setOwner(true);
});
afterEach(() => erasure.stop());

function deletionOf(id: string, version = DELETED_US): ChangeRow {
  return changeRow({ id, operation: 'delete', version });
}

async function count(query: string): Promise<number> {
  return (await db.read<{ found: number }>(`SELECT count() AS found FROM ${query}`))[0]?.found ?? Number.NaN;
}

/** Deleted users who are not marked as erased yet. */
const NOT_ERASED =
  '(SELECT user_id FROM user_deletions GROUP BY workspace_id, user_id HAVING max(erased_version) < max(version))';

test('deletions of the longest identifiers are erased, any number of them', async () => {
  const users = [..."😀'\\\0ä"].flatMap((character) =>
    Array.from({ length: 60 }, (_, index) => character.repeat(508) + String(index)),
  );
  await db.store(batchOf(users.map((user_id) => eventRow({ user_id, received_at: DELETED_US }))));
  await db.store(
    batchOf(
      [],
      users.map((user) => deletionOf(user)),
    ),
  );
  expect(await count(NOT_ERASED)).toBe(300);
  erasure.start();
  await expect.poll(() => count(NOT_ERASED)).toBe(0);
  expect(await count('events')).toBe(0);
});

test('a deletion that cannot be erased does not block the others', async () => {
  // The erasure's statements cannot take this version.
  await db.client.command({
    query: `INSERT INTO user_deletions (workspace_id, user_id, version, stored_at)
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
  await expect.poll(() => db.read(`SELECT user_id FROM ${NOT_ERASED}`)).toEqual([{ user_id: 'poison' }]);
});

test('only the deletion is left of a deleted user, and what came after it of a user who came back', async () => {
  const seen = (id: string, version: number) => changeRow({ id, operation: 'seen', version });
  const set = (id: string, version: number) =>
    changeRow({ id, operation: 'set', property: `at ${version}`, value: '1', version });
  const event = (user_id: string, received_at: number) => eventRow({ user_id, received_at });
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
  await expect.poll(() => count(NOT_ERASED)).toBe(0);

  const left = async (table: string, column: string) =>
    await db.read(`SELECT ${column} AS user, count() AS found FROM ${table} GROUP BY user ORDER BY user`);
  const remaining = [
    { user: 'back', found: 1 },
    { user: 'other', found: 2 },
  ];
  expect(await left('events', 'user_id')).toEqual(remaining);
  expect(await left('user_sightings', 'user_id')).toEqual(remaining);
  expect(await left('entity_properties', 'id')).toEqual(remaining);
  expect(await left('entities FINAL', 'id')).toEqual([
    { user: 'back', found: 1 },
    { user: 'other', found: 1 },
  ]);
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
  const { dead } = await db.store({
    events: messages('events', [...gone.events, ...kept.events]),
    changes: messages('changes', [...gone.changes, ...kept.changes]),
    unreadable: [],
  });
  expect(dead).toHaveLength(12);
  await db.store(batchOf([], [deletionOf(name)]));
  erasure.start();
  await expect.poll(() => count(NOT_ERASED)).toBe(0);
  const rows = await db.read<{ row: string }>('SELECT row FROM dead_letters FINAL');
  expect(rows.map(({ row }) => row).sort()).toEqual([...kept.events, ...kept.changes].sort());
});
