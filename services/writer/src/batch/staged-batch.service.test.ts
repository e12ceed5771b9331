import { randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { countsSql, DECIDING } from '@sluice/shared/clickhouse/property-versions';
import { mergeParts } from '@sluice/shared/clickhouse/testing/merge-parts';
import type { ChangeRow } from '@sluice/shared/rows';
import fc from '@sluice/shared/testing/fast-check';
import { ClickHouseSession } from '@sluice/storage/clickhouse/clickhouse-session';
import { afterAll, beforeAll, describe, expect, inject, test, vi } from 'vitest';
import { batchOf, changeRow, createTestStore, eventRow, messages, NOON, type TestStore } from '../testing/store.ts';
import { STATEMENTS } from './statements.ts';

let db: TestStore;

beforeAll(async () => {
  db = await createTestStore(inject('clickhouseUrl'));
});
afterAll(() => db.close());

/** The columns of an event that the server stamped when it came. */
const stampedAt = (timestamp: number) => ({ timestamp, received_at: timestamp * 1_000, stamped: 1 }) as const;

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

  test("one batch may span more months than the server's own limit of 100", async () => {
    const rows = Array.from({ length: 120 }, (_, month) =>
      eventRow({ workspace_id: 'months', timestamp: Date.UTC(2000, month, 15) }),
    );
    await db.store(batchOf(rows));
    await db.store(batchOf(rows));
    expect(await storedEvents('months')).toHaveLength(120);
  });

  test('storing events reads little, however many events have their timestamp and users were deleted', async () => {
    const database = await createTestStore(inject('clickhouseUrl'));
    try {
      await database.client.command({
        query: `
          INSERT INTO events (workspace_id, timestamp, uuid, event, user_id, received_at)
          SELECT 'midnight', fromUnixTimestamp64Milli(${NOON}, 'UTC'), generateUUIDv4(), 'e', 'u', now64(6)
          FROM numbers(200000)`,
      });
      await database.client.command({
        query: `
          INSERT INTO user_deletions (workspace_id, user_id, version)
          SELECT 'midnight', concat('u', toString(number)), 1 FROM numbers(100000)`,
      });
      const [stored] = await database.read<{ uuid: string }>('SELECT uuid FROM events LIMIT 1');
      const command = vi.spyOn(database.writerClient, 'command');
      const repeat = eventRow({ workspace_id: 'midnight', user_id: 'another', ...stored });
      await database.store(batchOf([eventRow({ workspace_id: 'midnight' }), repeat]));
      expect(await database.read('SELECT count() AS events FROM events')).toEqual([{ events: 200_001 }]);
      const results = await Promise.all(command.mock.results.map(({ value }) => value));
      const read = results.reduce((sum, { summary }) => sum + Number(summary?.read_rows ?? 0), 0);
      expect(read).toBeGreaterThan(0);
      expect(read).toBeLessThan(5_000);
    } finally {
      await database.close();
    }
  });

  test('a batch with a stamped event of today and one of months ago reads little of what is between, and finds the repeats of both', async () => {
    const database = await createTestStore(inject('clickhouseUrl'));
    try {
      const old = NOON - 200 * 86_400_000;
      const originals = [old, NOON].map((timestamp) => eventRow({ workspace_id: 'between', timestamp, stamped: 1 }));
      await database.store(batchOf(originals));
      await database.client.command({
        query: `
          INSERT INTO events (workspace_id, timestamp, uuid, event, received_at)
          SELECT 'between', fromUnixTimestamp64Milli(${old} + (number + 1) * 86000, 'UTC') AS time, generateUUIDv4(), 'e', time
          FROM numbers(200000)`,
      });
      const repeats = originals.map(({ timestamp, ...row }) => eventRow({ ...row, ...stampedAt(timestamp + 300_000) }));
      const others = [old, NOON].map((time) => eventRow({ workspace_id: 'between', ...stampedAt(time + 60_000) }));
      const command = vi.spyOn(database.writerClient, 'command');
      await database.store(batchOf([...repeats, ...others]));
      expect(await database.read('SELECT count() AS events FROM events')).toEqual([{ events: 200_004 }]);
      const results = await Promise.all(command.mock.results.map(({ value }) => value));
      const read = results.reduce((sum, { summary }) => sum + Number(summary?.read_rows ?? 0), 0);
      expect(read).toBeGreaterThan(0);
      expect(read).toBeLessThan(10_000);
    } finally {
      await database.close();
    }
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
    return (await currentValues([id])).get(id);
  }

  /** What decides the property of users, as query-api finds it. An organization counts as one who was never deleted. */
  async function currentValues(ids: readonly string[]): Promise<ReadonlyMap<string, unknown>> {
    const list = ids.map((id) => `'${id}'`).join(', ');
    const deletions = `(SELECT (groupArray(user_id), groupArray(deleted)) FROM (
      SELECT user_id, max(version) AS deleted FROM user_deletions WHERE user_id IN (${list}) GROUP BY user_id))`;
    const deleted = `if(kind = 'user',
      transform(id, arrayPushFront(${deletions}.1, ''), arrayPushFront(${deletions}.2, 0), toUInt64(0)), 0)`;
    const found = await db.read<{ id: string; operation: string; value: string }>(`
      SELECT id, winner.2.operation AS operation, winner.2.value AS value
      FROM (
        SELECT id, ${DECIDING} AS winner FROM entity_properties
        WHERE workspace_id = 'test' AND id IN (${list}) AND ${countsSql(deleted)} GROUP BY id
      )`);
    return new Map(found.flatMap(({ id, operation, value }) => (operation === 'set' ? [[id, JSON.parse(value)]] : [])));
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

  test.each([
    ['set before it', 'set', 0],
    ['set after it', 'set', 2],
    ['removed before it', 'remove', 0],
    ['removed after it', 'remove', 2],
  ] as const)('does not count for a property that is %s', async (name, operation, order) => {
    for (const [suffix, isReversed] of [
      ['', false],
      [' reversed', true],
    ] as const) {
      const id = `${name}${suffix}`;
      const value = operation === 'set' ? '"set"' : '';
      const other = changeRow({ operation, id, property: 'p', value, version: NOON * 1_000 + order });
      for (const row of isReversed ? [other, once(id, 1)] : [once(id, 1), other]) await db.store(batchOf([], [row]));
      expect(await currentValue(id)).toBe(operation === 'set' ? 'set' : undefined);
    }
  });

  test.each([
    ['set', 'set', 0],
    ['set once', 'set_once', 0],
    ['removed', 'remove', 0],
  ] as const)('counts after a deletion of its user, whatever was %s before', async (name, operation, order) => {
    const deleted = 5;
    for (const [suffix, after] of [
      ['', [6, 7]],
      [' reversed', [7, 6]],
    ] as const) {
      const id = `deleted, ${name}${suffix}`;
      const before = changeRow({ operation, id, property: 'p', value: '"old"', version: NOON * 1_000 + order });
      await db.store(batchOf([], [before]));
      await db.store(batchOf([], [changeRow({ operation: 'delete', id, version: NOON * 1_000 + deleted })]));
      for (const each of after) await db.store(batchOf([], [once(id, each)]));
      // The last of the week.
      expect(await currentValue(id)).toBe(7);
      const later = changeRow({ operation: 'set', id, property: 'p', value: '"set"', version: NOON * 1_000 + 8 });
      await db.store(batchOf([], [later]));
      await db.store(batchOf([], [once(id, 9)]));
      expect(await currentValue(id)).toBe('set');
    }
  });

  test('what decides follows from what was sent, in whatever batches and order, and however often', async () => {
    const WEEK_US = 604_800_000_000;
    const times = [0, 1, 2, 1_000_000, WEEK_US - 1, WEEK_US, 2 * WEEK_US];
    const time = fc.constantFrom(...times).map((after) => NOON * 1_000 + after);
    const operation = fc.constantFrom<ChangeRow['operation']>(
      'set',
      'set_once',
      'set_once',
      'set_once',
      'remove',
      'delete',
    );
    const sent = fc.record({ operation, version: time, arrives: fc.nat(9), again: fc.nat(20) });
    const histories = fc.array(fc.array(sent, { minLength: 1, maxLength: 7 }), { minLength: 300, maxLength: 300 });
    await fc.assert(
      fc.asyncProperty(histories, fc.uuid(), async (users, run) => {
        const expected = new Map<string, unknown>();
        const batches: ChangeRow[][] = Array.from({ length: 30 }, () => []);
        for (const [index, history] of users.entries()) {
          const id = `${run} ${index}`;
          const rows = history.map(({ operation, version }, place): ChangeRow => {
            // No two were accepted at the same time.
            const row = changeRow({ id, operation, version: version + 10 * place });
            if (operation === 'delete') return row;
            return { ...row, property: 'p', ...(operation !== 'remove' && { value: String(place) }) };
          });
          for (const [place, row] of rows.entries()) {
            const { arrives = 0, again = 0 } = history[place] ?? {};
            batches[arrives]?.push(row);
            batches[again + 10]?.push(row);
          }
          const value = decidingValue(rows, WEEK_US);
          if (value !== undefined) expected.set(id, value);
        }
        // Some are stored as one batch, others by themselves.
        for (const changes of batches) if (changes.length > 0) await db.store(batchOf([], changes));
        const ids = users.map((_, index) => `${run} ${index}`);
        expect(await currentValues(ids)).toEqual(expected);
      }),
      // A smaller history would take as many batches again.
      { numRuns: 1, endOnFailure: true },
    );
  });

  /** The last value that was set since the deletion, otherwise the first that was set once, or the last of its week. */
  function decidingValue(rows: readonly ChangeRow[], weekUs: number): unknown {
    const deleted = Math.max(0, ...rows.flatMap(({ operation, version }) => (operation === 'delete' ? [version] : [])));
    const since = rows.filter(({ operation, version }) => operation !== 'delete' && version > deleted);
    const inOrder = since.toSorted((one, other) => one.version - other.version);
    const last = inOrder.findLast(({ operation }) => operation !== 'set_once');
    const first = inOrder[0];
    const weekOf = ({ version }: ChangeRow) => Math.floor(version / weekUs);
    const ofWeek = inOrder.findLast((row) => first && weekOf(row) === weekOf(first));
    const deciding = last ?? (deleted === 0 ? first : ofWeek);
    return deciding?.value === undefined ? undefined : JSON.parse(deciding.value);
  }

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
  await expect(late).rejects.toMatchObject({ type: 'UNKNOWN_TABLE' });
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
    const [, statement = ''] = /```sql\n([\s\S]+?)```/.exec(await readFile(guide, 'utf8')) ?? [];
    for (let time = 0; time < 2; time += 1) await db.client.command({ query: statement });
    expect(await memberships()).toEqual(before);
  });

  test('have the same result after every order of six changes, with a deletion among them and each repeated', async () => {
    const ids = ['00000000-0000-4000-8000-00000000000a', '00000000-0000-4000-8000-00000000000b'] as const;
    const change = (id: string, version: number, row: Pick<ChangeRow, 'operation'> & Partial<ChangeRow>): ChangeRow =>
      changeRow({ workspace_id: 'orders', id, version, ...row });
    const changes = (id: string): ChangeRow[] => [
      change(id, 10, { operation: 'set', property: 'a', value: '1' }),
      change(id, 11, { operation: 'set', property: 'b', value: '2' }),
      change(id, 12, { operation: 'delete' }),
      change(id, 13, { operation: 'set', property: 'a', value: '3', change_id: ids[0] }),
      change(id, 13, { operation: 'set', property: 'a', value: '4', change_id: ids[1] }),
      change(id, 14, { operation: 'remove', property: 'c' }),
    ];
    const orders = permutations([0, 1, 2, 3, 4, 5]);
    expect(orders).toHaveLength(720);
    const users = orders.map((order, index) => order.map((position) => changes(`u${index}`)[position] as ChangeRow));
    for (const step of [0, 1, 2, 3, 4, 5]) {
      await db.store(
        batchOf(
          [],
          users.flatMap((rows) => [rows[step] as ChangeRow, rows[step] as ChangeRow]),
        ),
      );
    }
    const states = await db.read<{ property: string; operation: string; value: string; users: number }>(
      `SELECT property, operation, value, count() AS users
       FROM (
         SELECT id, property, tupleElement(max(register) AS newest, 'operation') AS operation, newest.value AS value,
           newest.version AS version
         FROM entity_properties WHERE workspace_id = 'orders' GROUP BY id, property
       ) AS folded
       INNER JOIN (
         SELECT user_id AS id, max(version) AS deleted FROM user_deletions WHERE workspace_id = 'orders' GROUP BY user_id
       ) AS deletions USING (id)
       WHERE version > deleted
       GROUP BY ALL ORDER BY property`,
    );
    expect(states).toEqual([
      { property: 'a', operation: 'set', value: '4', users: 720 },
      { property: 'c', operation: 'remove', value: '', users: 720 },
    ]);
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
    const batch = db.writer().open(batchOf([eventRow(row)]), { incarnation: 1, generation: 1 });
    await db.client.command({ query: 'RENAME TABLE entities TO entities_away' });
    await expect(batch.store()).rejects.toMatchObject({ type: 'UNKNOWN_TABLE' });
    await db.client.command({ query: 'RENAME TABLE entities_away TO entities' });
    const version = NOON * 1_000 + 100;
    await db.store(batchOf([], [changeRow({ workspace_id: 'between', id: 'u', operation: 'delete', version })]));
    expect(await batch.store()).toEqual({ rows: 1, userDeleted: 1 });
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

function permutations(items: readonly number[]): number[][] {
  if (items.length === 0) return [[]];
  return items.flatMap((item) => permutations(items.filter((other) => other !== item)).map((rest) => [item, ...rest]));
}
