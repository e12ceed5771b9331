import type { ChangeRow } from '@sluice/shared/rows';
import fc from '@sluice/shared/testing/fast-check';
import { afterAll, beforeAll, describe, expect, inject, test, vi } from 'vitest';
import { currentValues } from '../testing/current-values.ts';
import { batchOf, changeRow, createTestStore, eventRow, NOON, STAGINGS, type TestStore } from '../testing/store.ts';

describe.each(STAGINGS)('staging: %s', (staging) => {
  let db: TestStore;

  beforeAll(async () => {
    db = await createTestStore(inject('clickhouseUrl'), undefined, staging);
  });
  afterAll(() => db.close());

  /** The columns of an event that the server stamped when it came. */
  const stampedAt = (timestamp: number) => ({ timestamp, received_at: timestamp * 1_000, stamped: 1 }) as const;

  test("one batch may span more months than the server's own limit of 100", async () => {
    const rows = Array.from({ length: 120 }, (_, month) =>
      eventRow({ workspace_id: 'months', timestamp: Date.UTC(2000, month, 15) }),
    );
    await db.store(batchOf(rows));
    await db.store(batchOf(rows));
    expect(await db.read("SELECT count() AS events FROM events WHERE workspace_id = 'months'")).toEqual([
      { events: 120 },
    ]);
  });

  test('storing events reads little, however many events have their timestamp and users were deleted', async () => {
    const database = await createTestStore(inject('clickhouseUrl'), undefined, staging);
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
      const statements = (['command', 'exec'] as const).map((method) => vi.spyOn(database.writerClient, method));
      const repeat = eventRow({ workspace_id: 'midnight', user_id: 'another', ...stored });
      await database.store(batchOf([eventRow({ workspace_id: 'midnight' }), repeat]));
      expect(await database.read('SELECT count() AS events FROM events')).toEqual([{ events: 200_001 }]);
      const results = await Promise.all(statements.flatMap(({ mock }) => mock.results.map(({ value }) => value)));
      const read = results.reduce((sum, { summary }) => sum + Number(summary?.read_rows ?? 0), 0);
      expect(read).toBeGreaterThan(0);
      expect(read).toBeLessThan(5_000);
    } finally {
      await database.close();
    }
  });

  test('a batch with a stamped event of today and one of months ago reads little of what is between, and finds the repeats of both', async () => {
    const database = await createTestStore(inject('clickhouseUrl'), undefined, staging);
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
      const statements = (['command', 'exec'] as const).map((method) => vi.spyOn(database.writerClient, method));
      await database.store(batchOf([...repeats, ...others]));
      expect(await database.read('SELECT count() AS events FROM events')).toEqual([{ events: 200_004 }]);
      const results = await Promise.all(statements.flatMap(({ mock }) => mock.results.map(({ value }) => value)));
      const read = results.reduce((sum, { summary }) => sum + Number(summary?.read_rows ?? 0), 0);
      expect(read).toBeGreaterThan(0);
      expect(read).toBeLessThan(10_000);
    } finally {
      await database.close();
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
        expect(await currentValues(db, ids)).toEqual(expected);
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

  function permutations(items: readonly number[]): number[][] {
    if (items.length === 0) return [[]];
    return items.flatMap((item) =>
      permutations(items.filter((other) => other !== item)).map((rest) => [item, ...rest]),
    );
  }
});
