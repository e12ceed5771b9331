import { randomUUID } from 'node:crypto';
import type { ChangeRow } from '@sluice/shared/rows';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { batchOf, changeRow, createTestStore, eventRow, NOON, STAGINGS, type TestStore } from '../testing/store.ts';

describe.each(STAGINGS)('staging: %s', (staging) => {
  let db: TestStore;

  beforeAll(async () => {
    db = await createTestStore(inject('clickhouseUrl'), undefined, staging);
  });
  afterAll(() => db.close());

  test('a stamped event is no repeat of an event with the same uuid in another workspace', async () => {
    const uuid = randomUUID();
    const stamped = (workspace_id: string, seconds: number) =>
      eventRow({ workspace_id, uuid, timestamp: NOON + seconds * 1_000, stamped: 1 });
    await db.store(batchOf([stamped('first', 0)]));
    // The third one is a repeat, of the first workspace.
    await db.store(batchOf([stamped('second', 20), stamped('third', 40), stamped('first', 60)]));
    const sql = `SELECT workspace_id FROM events WHERE uuid = '${uuid}' ORDER BY workspace_id`;
    expect(await db.read(sql)).toEqual(['first', 'second', 'third'].map((workspace_id) => ({ workspace_id })));
  });

  test('the newest of several changes of a property in one batch wins, in whatever order they come', async () => {
    for (const versions of [
      [1, 2, 3],
      [3, 2, 1],
      [2, 3, 1],
    ]) {
      const id = randomUUID();
      const changes = versions.map((version) =>
        changeRow({ id, operation: 'set', property: 'plan', value: String(version), version }),
      );
      await db.store(batchOf([], changes));
      const sql = `SELECT max(register).value AS value FROM entity_properties WHERE id = '${id}' GROUP BY id`;
      expect(await db.read(sql)).toEqual([{ value: '3' }]);
    }
  });

  test('a user who was seen with an organization belongs to it, from both sides', async () => {
    const [id, group_id] = [randomUUID(), randomUUID()];
    const seen = (version: number, row: Partial<ChangeRow> = {}) =>
      changeRow({ id, operation: 'seen', version, ...row });
    await db.store(batchOf([], [seen(5_000), seen(7_000, { group_id }), seen(9_000, { group_id })]));
    const entities = await db.read(
      `SELECT kind, id, other_id, toUnixTimestamp64Milli(first_seen_at) AS first, toUnixTimestamp64Milli(last_seen_at) AS last
     FROM entities FINAL WHERE '${id}' IN (id, other_id) ORDER BY kind`,
    );
    expect(entities).toEqual([
      { kind: 'member', id: group_id, other_id: id, first: 7, last: 9 },
      { kind: 'membership', id, other_id: group_id, first: 7, last: 9 },
      { kind: 'user', id, other_id: '', first: 5, last: 9 },
    ]);
  });

  test('every sighting of a user is stored, and none of an organization', async () => {
    const id = randomUUID();
    await db.store(
      batchOf(
        [],
        [
          changeRow({ id, operation: 'seen', version: 5 }),
          changeRow({ id, operation: 'seen', version: 7 }),
          changeRow({ id, operation: 'seen', version: 9, kind: 'organization' }),
        ],
      ),
    );
    const sql = `SELECT DISTINCT version FROM user_sightings WHERE user_id = '${id}' ORDER BY version`;
    expect(await db.read(sql)).toEqual([{ version: 5 }, { version: 7 }]);
  });
});
