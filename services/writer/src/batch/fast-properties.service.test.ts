import { randomUUID } from 'node:crypto';
import { FAST_LIST } from '@sluice/shared/clickhouse/fast-properties';
import fc, { sample } from '@sluice/shared/testing/fast-check';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { batchOf, createTestStore, eventRow, NOON, STAGINGS, type TestStore } from '../testing/store.ts';

describe.each(STAGINGS)('staging: %s', (staging) => {
  let db: TestStore;

  beforeAll(async () => {
    db = await createTestStore(inject('clickhouseUrl'), undefined, staging);
  });
  afterAll(() => db.close());

  async function declare(workspace_id: string, names: readonly string[]): Promise<void> {
    await db.client.insert({
      table: 'console_fast_properties',
      values: [{ workspace_id, names }],
      format: 'JSONEachRow',
    });
  }

  /** Stores events of a workspace with these properties, in one batch. */
  async function store(workspace_id: string, properties: readonly unknown[]): Promise<void> {
    await db.store(
      batchOf(
        properties.map((one, index) =>
          eventRow({ workspace_id, timestamp: NOON + index, properties: one as Record<string, unknown> }),
        ),
      ),
    );
  }

  const name = fc.constantFrom('plan', 'a"b', "it's", '\\', ' ', 'ä', '__proto__', '0');
  const anyObject = fc.dictionary(
    fc.oneof({ weight: 4, arbitrary: name }, { weight: 1, arbitrary: fc.string({ unit: 'binary', maxLength: 3 }) }),
    fc.oneof(
      fc.jsonValue({ maxDepth: 2 }),
      fc.string({ unit: 'binary', maxLength: 30 }),
      fc.constantFrom(
        null,
        '',
        'null',
        -0,
        1e21,
        5e-324,
        2 ** 53,
        2 ** 63,
        1e20,
        '\ud800',
        '\0',
        '1234567890123456789',
      ),
      fc.constant('long '.repeat(60)),
    ),
    { maxKeys: 6, noNullPrototype: true },
  );

  test('a column has what the text gives, for every JSON value, or says that the text has to be read', async () => {
    const workspace = randomUUID();
    const names = ['plan', '', 'a"b', "it's", '\\', ' ', 'ä', '__proto__', '0'];
    await declare(workspace, names);
    await store(workspace, sample(anyObject, 500));
    const differ = names.map((one, index) => {
      const column = `fast_${index + 1}`;
      if (one === '') return `${column} != ''`;
      const raw = `JSONExtractRaw(properties, '${one.replaceAll(/['\\]/g, '\\$&')}')`;
      // The text is needed for these alone.
      const isOfText = `(NOT isValidJSON(properties) OR match(${raw}, '^[\\[{]|[0-9]{19}') OR length(${raw}) > 256)`;
      return `bitTest(fast_set, ${index}) != ${isOfText} OR NOT ${isOfText} AND ${column} != ${raw}`;
    });
    const [found] = await db.read<Record<string, number>>(
      `SELECT count() AS events, countIf(${differ.join(' OR ')}) AS wrong, countIf(fast_set = 0) AS without,
       countIf(fast_1 = '"?"') AS marks, countIf(fast_1 NOT IN ('', '?')) AS known, countIf(fast_1 = '?') AS unknown
     FROM events WHERE workspace_id = '${workspace}'`,
    );
    expect(found).toMatchObject({ events: 500, wrong: 0, without: 0 });
    expect(Math.min(found?.['known'] ?? 0, found?.['unknown'] ?? 0)).toBeGreaterThan(10);
  });

  test('each event has what its own workspace declared when it was stored, and its row says which list that was', async () => {
    const [declared, never, other] = [randomUUID(), randomUUID(), randomUUID()];
    const event = (workspace_id: string, n: number) =>
      eventRow({ workspace_id, timestamp: NOON + n, properties: { plan: 'pro', n, '': 'empty' } });
    const storeBatch = (n: number) => db.store(batchOf([declared, never, other].map((one) => event(one, n))));
    await storeBatch(0);
    await declare(declared, ['plan', 'n']);
    await declare(other, ['', 'n']);
    await storeBatch(1);
    // Withdrawn, the column reused, and all withdrawn.
    await declare(declared, ['n']);
    await storeBatch(2);
    await declare(declared, []);
    await storeBatch(3);
    const rows = await db.read<{ of: string; names: string; values: string[] }>(
      `SELECT workspace_id AS of, arrayStringConcat(sets.names, ',') AS names, [fast_1, fast_2, fast_3] AS values
     FROM events LEFT JOIN console_fast_properties AS sets
       ON sets.workspace_id = events.workspace_id AND sets.row_set = ${FAST_LIST} AND events.fast_set != 0
     WHERE workspace_id IN ('${declared}', '${never}', '${other}') ORDER BY timestamp, workspace_id = '${other}'`,
    );
    const of = (workspace: string) => rows.filter((row) => row.of === workspace).map(({ of: _, ...row }) => row);
    const nothing = { names: '', values: ['', '', ''] };
    expect(of(declared)).toEqual([
      nothing,
      { names: 'plan,n', values: ['"pro"', '1', ''] },
      { names: 'n', values: ['2', '', ''] },
      nothing,
    ]);
    expect(of(never)).toEqual([nothing, nothing, nothing, nothing]);
    expect(of(other)).toEqual([nothing, ...[1, 2, 3].map((n) => ({ names: ',n', values: ['', String(n), ''] }))]);
  });

  test('a batch whose workspaces declare more than a statement may have is stored; what their events lack is filled later', async () => {
    const workspaces = Array.from({ length: 300 }, () => randomUUID());
    const names = Array.from({ length: 16 }, (_, index) => `${index}${'ü'.repeat(198)}`);
    await db.client.insert({
      table: 'console_fast_properties',
      values: workspaces.map((workspace_id) => ({ workspace_id, names })),
      format: 'JSONEachRow',
    });
    await db.store(
      batchOf(workspaces.map((workspace_id) => eventRow({ workspace_id, properties: { [`${names[15]}`]: 7 } }))),
    );
    const rows = await db.read<{ has: number; value: string }>(
      `SELECT DISTINCT fast_set != 0 AS has, fast_16 AS value FROM events
     WHERE workspace_id IN ('${workspaces.join("', '")}') ORDER BY has`,
    );
    expect(rows).toEqual([
      { has: 0, value: '' },
      { has: 1, value: '7' },
    ]);
  });
});
