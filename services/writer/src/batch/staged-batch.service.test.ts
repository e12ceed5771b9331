import { randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { mergeParts } from '@sluice/shared/clickhouse/testing/merge-parts';
import type { ChangeRow } from '@sluice/shared/rows';
import { ClickHouseSession } from '@sluice/storage/clickhouse/clickhouse-session';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { currentValues } from '../testing/current-values.ts';
import {
  batchOf,
  changeRow,
  createTestStore,
  eventRow,
  messages,
  NOON,
  STAGINGS,
  type TestStore,
} from '../testing/store.ts';
import { STATEMENTS } from './statements.ts';

describe.each(STAGINGS)('staging: %s', (staging) => {
  let db: TestStore;

  beforeAll(async () => {
    db = await createTestStore(inject('clickhouseUrl'), undefined, staging);
  });
  afterAll(() => db.close());

  interface Stored {
    uuid: string;
    timestamp: string;
    received_at: string;
  }

  async function storedEvents(workspace: string): Promise<Stored[]> {
    const query = `SELECT uuid, timestamp, received_at FROM events WHERE workspace_id = '${workspace}' ORDER BY timestamp`;
    return await db.read<Stored>(query);
  }

  describe('events', () => {
    test('a batch that is stored again, whole or in part, or that holds rows twice, adds nothing', async () => {
      const rows = Array.from({ length: 500 }, (_, index) =>
        eventRow({ workspace_id: 'again', timestamp: NOON + index }),
      );
      await db.store(batchOf([...rows, ...rows.slice(0, 50)]));
      await db.store(batchOf(rows));
      await db.store(batchOf([...rows.slice(100, 300), eventRow({ workspace_id: 'again' })]));
      expect(await storedEvents('again')).toHaveLength(501);
    });

    test('the same uuid at another timestamp, or in another workspace, is another event', async () => {
      const uuid = randomUUID();
      await db.store(batchOf([eventRow({ workspace_id: 'key-a', uuid }), eventRow({ workspace_id: 'key-b', uuid })]));
      await db.store(batchOf([eventRow({ workspace_id: 'key-a', uuid, timestamp: NOON + 1 })]));
      expect(await storedEvents('key-a')).toHaveLength(2);
      expect(await storedEvents('key-b')).toHaveLength(1);
    });

    test('JSON objects are stored as the text that came', async () => {
      const properties =
        '{"b":1,"a":{"c":null,"d":{}},"a.c":[],"__proto__":{"x":1},"n":-0,"big":12345678901234567890,"s":"\\ud800\\u0000"}';
      const row = JSON.stringify(eventRow({ workspace_id: 'text' })).replace('}', `,"properties":${properties}}`);
      await db.store({ events: messages('events', [row]), changes: [], deadLetters: [] });
      const stored = await db.read<{ properties: string }>(
        "SELECT properties, context FROM events WHERE workspace_id = 'text'",
      );
      expect(stored).toEqual([{ properties, context: '{}' }]);
    });
  });

  describe('set_once', () => {
    const once = (id: string, order: number, value = JSON.stringify(order)) =>
      changeRow({ operation: 'set_once', id, property: 'p', value, version: NOON * 1_000 + order });

    async function currentValue(id: string): Promise<unknown> {
      return (await currentValues(db, [id])).get(id);
    }

    test.each([
      ['in one batch', (rows: readonly ChangeRow[]) => [rows]],
      ['in batches of their own', (rows: readonly ChangeRow[]) => rows.map((row) => [row])],
      ['in any order', (rows: readonly ChangeRow[]) => rows.toReversed().map((row) => [row])],
    ])('the first that was accepted wins, when they arrive %s', async (name, batches) => {
      const id = `once ${name}`;
      for (const changes of batches([once(id, 1), once(id, 2), once(id, 3)])) await db.store(batchOf([], changes));
      expect(await currentValue(id)).toBe(1);
    });

    test('does not count for a property that is set or removed, before it or after it', async () => {
      const others = [
        { name: 'set before it', operation: 'set', order: 0 },
        { name: 'set after it', operation: 'set', order: 2 },
        { name: 'removed before it', operation: 'remove', order: 0 },
        { name: 'removed after it', operation: 'remove', order: 2 },
      ] as const;
      const pairs = others.flatMap(({ name, operation, order }) =>
        [name, `${name} reversed`].map((id) => {
          const value = operation === 'set' ? '"set"' : '';
          const other = changeRow({ operation, id, property: 'p', value, version: NOON * 1_000 + order });
          return id === name ? [once(id, 1), other] : [other, once(id, 1)];
        }),
      );
      for (const place of [0, 1])
        await db.store(
          batchOf(
            [],
            pairs.map((pair) => pair[place] as ChangeRow),
          ),
        );
      const values = await currentValues(
        db,
        pairs.map(([row]) => String(row?.id)),
      );
      const wasSet = others.filter(({ operation }) => operation === 'set');
      expect(values).toEqual(
        new Map(
          wasSet.flatMap(({ name }) => [
            [name, 'set'],
            [`${name} reversed`, 'set'],
          ]),
        ),
      );
    });

    test('counts after a deletion of its user, whatever was set, set once or removed before', async () => {
      const [deletedAt, inOrder] = [5, [6, 7]];
      const users = (['set', 'set_once', 'remove'] as const).flatMap((operation) => [
        { id: `deleted, ${operation}`, operation, after: inOrder },
        { id: `deleted, ${operation} reversed`, operation, after: inOrder.toReversed() },
      ]);
      const store = async (rowOf: (user: (typeof users)[number]) => ChangeRow) =>
        await db.store(batchOf([], users.map(rowOf)));
      const at = (order: number) => NOON * 1_000 + order;
      const valuesNow = async () =>
        new Set(
          (
            await currentValues(
              db,
              users.map(({ id }) => id),
            )
          ).values(),
        );
      await store(({ operation, id }) => changeRow({ operation, id, property: 'p', value: '"old"', version: at(0) }));
      await store(({ id }) => changeRow({ operation: 'delete', id, version: at(deletedAt) }));
      for (const place of [0, 1]) await store(({ id, after }) => once(id, after[place] as number));
      // The last of the week.
      expect(
        await currentValues(
          db,
          users.map(({ id }) => id),
        ),
      ).toEqual(new Map(users.map(({ id }) => [id, 7])));
      await store(({ id }) => changeRow({ operation: 'set', id, property: 'p', value: '"set"', version: at(8) }));
      await store(({ id }) => once(id, 9));
      expect(await valuesNow()).toEqual(new Set(['set']));
    });

    test('the same that is set once a thousand times has one row, and one for each week', async () => {
      const id = 'again and again';
      for (let batch = 0; batch < 10; batch += 1)
        await db.store(
          batchOf(
            [],
            Array.from({ length: 100 }, (_, index) => once(id, 100 * batch + index, '"same"')),
          ),
        );
      await mergeParts(db.client, 'entity_properties');
      const [stored] = await db.read<{ found: number }>(
        `SELECT count() AS found FROM entity_properties WHERE id = '${id}'`,
      );
      expect(stored?.found).toBe(2);
    });

    test('of an organization counts also where a user of the same identifier was deleted', async () => {
      const id = 'user and organization';
      await db.store(batchOf([], [changeRow({ operation: 'delete', id, version: NOON * 1_000 + 5 })]));
      const rows = [once(id, 1), once(id, 2)].map((row): ChangeRow => ({ ...row, kind: 'organization' }));
      await db.store(batchOf([], [...rows, changeRow({ id, operation: 'seen', version: NOON * 1_000 + 6 })]));
      expect(await currentValue(id)).toBe(1);
    });

    test('is left out when its user was deleted after it was accepted', async () => {
      const id = 'once and deleted';
      await db.store(batchOf([], [changeRow({ operation: 'delete', id, version: NOON * 1_000 + 5 })]));
      await db.store(batchOf([], [once(id, 1)]));
      expect(await currentValue(id)).toBeUndefined();
      await db.store(batchOf([], [once(id, 6)]));
      expect(await currentValue(id)).toBe(6);
    });
  });

  test('a statement that begins after its session was closed fails and stores nothing', async () => {
    const session = new ClickHouseSession(db.writerClient, 'test', 5_000);
    await session.run(STATEMENTS['stage-events']);
    const row = JSON.stringify(eventRow({ workspace_id: 'late' }));
    expect(await session.load(STATEMENTS['load-events'], [Buffer.from(row)])).toBe(1);
    await session.close();
    const late = session.run(STATEMENTS['store-events'], { group: 'g', incarnation: 1, generation: 1 });
    await expect(late).rejects.toMatchObject({ type: 'SESSION_NOT_FOUND' });
    expect(await storedEvents('late')).toEqual([]);
  });

  test('ClickHouse itself ends a statement of a session that takes too long', async () => {
    const session = new ClickHouseSession(db.writerClient, 'test', 500);
    const slow = { name: 'slow', sql: 'SELECT sleepEachRow(0.1) FROM numbers(150) SETTINGS max_block_size = 1' };
    await expect(session.run(slow)).rejects.toMatchObject({ type: 'TIMEOUT_EXCEEDED' });
    await session.close();
  });

  describe('events stamped on receipt', () => {
    const uuid = randomUUID();
    const stamped = (seconds: number) =>
      eventRow({ workspace_id: 'stamped', uuid, timestamp: NOON + seconds * 1_000, stamped: 1, user_id: 'u' });

    test('a repeat within ten minutes is recognised by its uuid, in one batch and across batches: the first one stays', async () => {
      await db.store(batchOf([stamped(5), stamped(0), stamped(90)]));
      await db.store(batchOf([stamped(300), eventRow({ workspace_id: 'stamped', timestamp: NOON - 1 })]));
      await db.store(batchOf([stamped(0), stamped(5)]));
      const stored = await storedEvents('stamped');
      expect(stored.map(({ timestamp }) => timestamp)).toEqual(['2026-03-01 11:59:59.999', '2026-03-01 12:00:05.000']);
    });

    test('a repeat does not change when its user was last seen', async () => {
      const [user] = await db.read(
        "SELECT first_seen_at, last_seen_at FROM entities FINAL WHERE workspace_id = 'stamped' AND kind = 'user'",
      );
      expect(user).toEqual({ first_seen_at: '2026-03-01 12:00:05.000', last_seen_at: '2026-03-01 12:00:05.000' });
    });

    test('an event with the same uuid an hour later is a new one', async () => {
      await db.store(batchOf([stamped(7_200)]));
      expect(await storedEvents('stamped')).toHaveLength(3);
    });
  });

  describe('users and organizations', () => {
    test('are seen from the first to the last timestamp of their events, in whatever order the events come', async () => {
      const at = (day: number) =>
        eventRow({ workspace_id: 'seen', timestamp: Date.UTC(2026, 0, day), user_id: 'u', group_id: 'g' });
      await db.store(batchOf([at(5)]));
      await db.store(batchOf([at(9), at(2)]));
      const rows = await db.read(
        `SELECT kind, id, other_id, first_seen_at, last_seen_at FROM entities FINAL
       WHERE workspace_id = 'seen' ORDER BY kind`,
      );
      const span = { first_seen_at: '2026-01-02 00:00:00.000', last_seen_at: '2026-01-09 00:00:00.000' };
      expect(rows).toEqual([
        { kind: 'member', id: 'g', other_id: 'u', ...span },
        { kind: 'membership', id: 'u', other_id: 'g', ...span },
        { kind: 'organization', id: 'g', other_id: '', ...span },
        { kind: 'user', id: 'u', other_id: '', ...span },
      ]);
    });

    test.each([
      ['with a timestamp of its own', 0],
      ['stamped on receipt', 1],
    ])('are not seen in a repeat of an event %s that names others', async (_, stamped) => {
      const workspace_id = `repeats ${stamped}`;
      const uuid = randomUUID();
      const sentAt = (seconds: number, user_id: string, group_id: string) =>
        eventRow({
          workspace_id,
          uuid,
          user_id,
          group_id,
          received_at: (NOON + seconds) * 1_000,
          timestamp: NOON + stamped * seconds,
          ...(stamped && { stamped: 1 }),
        });
      await db.store(
        batchOf([sentAt(1, 'first', 'g'), sentAt(2, 'of the batch', 'g'), sentAt(3, 'first', 'of the batch')]),
      );
      await db.store(batchOf([sentAt(4, 'later', 'g'), sentAt(5, 'first', 'later'), sentAt(6, '', 'later')]));
      const entities = await db.read(
        `SELECT DISTINCT kind, id, other_id FROM entities WHERE workspace_id = '${workspace_id}' ORDER BY kind`,
      );
      expect(entities).toEqual([
        { kind: 'member', id: 'g', other_id: 'first' },
        { kind: 'membership', id: 'first', other_id: 'g' },
        { kind: 'organization', id: 'g', other_id: '' },
        { kind: 'user', id: 'first', other_id: '' },
      ]);
    });

    test('belong together by the events that were stored before memberships, after one statement', async () => {
      const memberships = async () =>
        await db.read(
          `SELECT kind, id, other_id, first_seen_at, last_seen_at, version FROM entities FINAL
         WHERE workspace_id = 'seen' AND other_id != '' ORDER BY kind`,
        );
      const before = await memberships();
      expect(before).toHaveLength(2);
      await db.client.command({
        query: "ALTER TABLE entities DELETE WHERE other_id != '' SETTINGS mutations_sync = 1",
      });
      expect(await memberships()).toEqual([]);
      const guide = new URL('../../../../docs/operate/upgrade.md', import.meta.url);
      const [, statement = ''] = /```sql\n(INSERT [\s\S]+?)```/.exec(await readFile(guide, 'utf8')) ?? [];
      for (let time = 0; time < 2; time += 1) await db.client.command({ query: statement });
      expect(await memberships()).toEqual(before);
    });
  });

  describe('a deleted user', () => {
    const event = (received: number, uuid: string = randomUUID()) =>
      eventRow({ workspace_id: 'deleted', user_id: 'u', uuid, received_at: NOON * 1_000 + received });
    const deletion = changeRow({ workspace_id: 'deleted', id: 'u', operation: 'delete', version: NOON * 1_000 + 100 });

    test('an event that was accepted before the deletion is not stored after it; a later event is', async () => {
      const [early, again] = [event(10), event(20)];
      await db.store(batchOf([again]));
      await db.store(batchOf([early], [deletion]));
      await db.store(batchOf([event(99), event(100), event(101)]));
      expect((await storedEvents('deleted')).map((row) => row.received_at).sort()).toEqual([
        '2026-03-01 12:00:00.000020',
        '2026-03-01 12:00:00.000101',
      ]);
      // The deletion hides the stored event, so sending it again is no repeat. Sending the new one again is.
      await db.store(batchOf([event(150, again.uuid)]));
      await db.store(batchOf([event(150, again.uuid), event(160, again.uuid)]));
      const visible = (await storedEvents('deleted')).filter((row) => row.received_at > '2026-03-01 12:00:00.000100');
      expect(visible.filter(({ uuid }) => uuid === again.uuid)).toMatchObject([
        { received_at: '2026-03-01 12:00:00.000150' },
      ]);
    });

    test('an event of an attempt that failed is not stored by the next one, when the deletion came in between', async () => {
      const row = { workspace_id: 'between', user_id: 'u' };
      const batch = db.writer().open(batchOf([eventRow(row)]), { incarnation: 1, generation: 1, server: '' });
      await db.client.command({ query: 'RENAME TABLE entities TO entities_away' });
      await expect(batch.store()).rejects.toMatchObject({ type: 'UNKNOWN_TABLE' });
      await db.client.command({ query: 'RENAME TABLE entities_away TO entities' });
      const version = NOON * 1_000 + 100;
      await db.store(batchOf([], [changeRow({ workspace_id: 'between', id: 'u', operation: 'delete', version })]));
      expect(await batch.store()).toEqual({ rows: 1, userDeleted: 1, hasFound: false });
      expect(await storedEvents('between')).toEqual([]);
    });

    test('who comes back has rows of its own, which are not merged with those from before the deletion', async () => {
      const workspace_id = 'came back';
      const deletedUs = NOON * 1_000 + 100;
      const at = (received: number, user_id: string, workspace = workspace_id) =>
        eventRow({ workspace_id: workspace, user_id, group_id: 'in event', received_at: NOON * 1_000 + received });
      const seen = (received: number, id: string, row: Partial<ChangeRow> = {}) =>
        changeRow({ workspace_id, id, operation: 'seen', version: NOON * 1_000 + received, ...row });
      const deletion = (id: string) => changeRow({ workspace_id, id, operation: 'delete', version: deletedUs });
      await db.store(batchOf(['event', 'seen', 'other'].map((user) => at(10, user))));
      await db.store(batchOf([at(20, 'early')], ['event', 'seen'].map(deletion)));
      await db.store(batchOf([at(101, 'event'), at(120, 'event'), at(120, 'other'), at(120, 'event', 'another')]));
      await db.store(
        batchOf(
          [at(120, 'same batch'), at(30, 'same batch')],
          [
            ...[seen(120, 'seen', { group_id: 'in change' }), seen(130, 'same batch'), seen(120, 'other')],
            ...[seen(120, 'seen', { kind: 'organization' }), deletion('same batch')],
          ],
        ),
      );
      const rows = await db.read<{ kind: string; id: string; other_id: string }>(
        `SELECT DISTINCT kind, id, other_id FROM entities WHERE workspace_id = '${workspace_id}' ORDER BY ALL`,
      );
      const of = (kind: string) => rows.filter((row) => row.kind === kind).map(({ id, other_id }) => [id, other_id]);
      expect(of('user')).toEqual([
        ['early', ''],
        ['event', ''],
        ['event', String(deletedUs)],
        ['other', ''],
        ['same batch', String(deletedUs)],
        ['seen', ''],
        ['seen', String(deletedUs)],
      ]);
      expect(of('organization')).toEqual([
        ['in event', ''],
        ['seen', ''],
      ]);
      expect(of('membership')).toContainEqual(['event', 'in event']);
      expect(of('membership')).toContainEqual(['seen', 'in change']);
      const inAnother = "SELECT other_id FROM entities WHERE workspace_id = 'another' AND kind = 'user'";
      expect(await db.read(inAnother)).toEqual([{ other_id: '' }]);
    });

    test('properties from before the deletion are not stored after it', async () => {
      const set = (version: number, property: string) =>
        changeRow({
          workspace_id: 'deleted',
          id: 'u',
          operation: 'set',
          property,
          value: '1',
          version: NOON * 1_000 + version,
        });
      await db.store(batchOf([], [set(50, 'late'), set(200, 'new')]));
      const properties = await db.read<{ property: string }>(
        "SELECT property FROM entity_properties WHERE workspace_id = 'deleted'",
      );
      expect(properties).toEqual([{ property: 'new' }]);
    });
  });
});
