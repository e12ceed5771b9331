import { toRowBatch } from '@sluice/storage/protocol/row-batch';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
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

describe.each(STAGINGS)('staging: %s', (staging) => {
  let db: TestStore;

  beforeAll(async () => {
    db = await createTestStore(inject('clickhouseUrl'), undefined, staging);
  });
  afterAll(() => db.close());

  const good = (index: number) => JSON.stringify(eventRow({ workspace_id: 'dead', timestamp: NOON + index }));

  test('rows that cannot be stored are isolated, byte for byte, with their offset and line, and the rest is stored', async () => {
    const incomplete = JSON.stringify({ ...eventRow(), workspace_id: undefined });
    const bad = new Map([
      [7, 'no json'],
      [13, JSON.stringify({ ...eventRow(), timestamp: 'yesterday' })],
      [14, incomplete],
      [15, '{}'],
      [29, JSON.stringify({ ...eventRow(), colour: 'red' })],
      [41, JSON.stringify(eventRow({ timestamp: Date.UTC(2500, 0, 1) }))],
      [44, JSON.stringify(eventRow()).slice(0, -1)],
    ]);
    const lines = Array.from({ length: 50 }, (_, index) => bad.get(index) ?? good(index));
    const badChange = JSON.stringify(changeRow({ id: 'u', operation: 'set', property: 'a', value: '1' })).replace(
      '"set"',
      '"paint"',
    );
    const changes = messages('changes', [
      JSON.stringify(changeRow({ workspace_id: 'dead', id: 'u', operation: 'seen' })),
      badChange,
    ]);

    // The second time is like a restart after a crash before the offsets were committed.
    for (let again = 0; again < 2; again += 1) {
      const { rows, deadLetters } = await db.store({ events: messages('events', lines), changes, deadLetters: [] });
      expect(rows).toBe(44);
      expect(deadLetters.map(({ offset, line, row }) => [offset, line, row.toString()])).toEqual([
        ...[...bad].map(([index, row]) => [String(100 + Math.floor(index / 10)), index % 10, row]),
        ['100', 1, badChange],
      ]);
      expect(await db.read("SELECT count() AS rows FROM events WHERE workspace_id = 'dead'")).toEqual([{ rows: 43 }]);
    }
    const kept = await db.read<{ row: string; reason: string; partition: number }>(
      'SELECT row, reason, partition FROM dead_letters FINAL',
    );
    expect(kept.map(({ row }) => row).sort()).toEqual([...bad.values(), badChange].sort());
    for (const { reason, partition } of kept) {
      expect(reason).toMatch(/^[A-Z_]+: /);
      expect(partition).toBe(3);
    }
  });

  test.each([
    ['in brackets, before others', (row: string) => [`[${row}]`, good(201)]],
    ['in brackets, after others', (row: string) => [good(202), `[${row}]`]],
    ['with a semicolon', (row: string) => [`${row};`, good(203)]],
    ['in brackets of several lines', (row: string) => ['[', row, ']', good(204)]],
  ])('an object %s, which ClickHouse may take alone but not among others, is isolated', async (_, linesWith) => {
    const lines = linesWith(good(200));
    const { deadLetters } = await db.store({ ...batchOf([]), events: messages('events', lines) });
    const bad = lines.filter((line) => !/^\{.*\}$/.test(line));
    expect(deadLetters.map(({ row }) => row.toString())).toEqual(bad);
  });

  test.each([
    ['alone', 0],
    ['after more bad rows than ClickHouse is asked about one by one', 150],
  ])('a good row after one whose uuid is cut off is stored: %s', async (_, before) => {
    const { uuid: _uuid, ...row } = eventRow({ workspace_id: 'cut off' });
    const cutOff = JSON.stringify({ ...row, uuid: '0190' });
    const following = JSON.stringify(eventRow({ workspace_id: 'cut off', event: 'following' }));
    const colours = Array.from({ length: before }, (_, index) =>
      JSON.stringify({ ...eventRow(), [`colour ${index}`]: 1 }),
    );
    const { deadLetters } = await db.store({
      events: messages('events', [...colours, cutOff, following]),
      changes: [],
      deadLetters: [],
    });
    expect(deadLetters.map((one) => one.row.toString())).toEqual([...colours, cutOff]);
  });

  test.each([
    ['an event', 'events', { ...eventRow(), workspace_id: '' }, eventRow()],
    ['an event of another time', 'events', eventRow({ timestamp: Date.UTC(2500, 0, 1) }), eventRow()],
    [
      'a change',
      'changes',
      changeRow({ id: 'u', operation: 'seen', version: 0 }),
      changeRow({ id: 'u', operation: 'seen' }),
    ],
  ] as const)(
    '%s that violates a constraint is a dead letter, where nothing else is wrong',
    async (_, kind, bad, row) => {
      const lines = [row, bad].map((one) => JSON.stringify(one));
      const { deadLetters } = await db.store({ ...batchOf([]), [kind]: messages(kind, lines) });
      expect(deadLetters.map((one) => one.row.toString())).toEqual([lines[1]]);
      expect(deadLetters[0]?.reason).toContain('VIOLATED_CONSTRAINT');
    },
  );

  test('bytes that are not UTF-8 are kept as they are', async () => {
    const row = Buffer.from([0x7b, 0xff, 0x00, 0xfe]);
    const deadLetter = { kind: 'bytes', format: '1', topic: 't', partition: 0, offset: '1', line: 0, row, reason: 'r' };
    await db.store({ ...batchOf([]), deadLetters: [deadLetter] });
    expect(await db.read("SELECT hex(row) AS bytes FROM dead_letters FINAL WHERE kind = 'bytes'")).toEqual([
      { bytes: '7BFF00FE' },
    ]);
  });

  test('a message of an unknown kind or format is one dead letter', async () => {
    const message = (headers: Record<string, string>) => ({
      topic: 't',
      partition: 2,
      message: { key: null, value: Buffer.from('x'), timestamp: '0', attributes: 0, offset: '9', headers },
    });
    const batch = toRowBatch([
      message({ kind: 'events', format: '2' }),
      message({ kind: 'songs', format: '1' }),
      message({}),
    ]);
    expect(batch.deadLetters.map(({ kind, format, reason }) => [kind, format, reason])).toEqual([
      ['events', '2', 'the format is not 1'],
      ['songs', '1', 'the kind is not known'],
      ['', '', 'the format is not 1'],
    ]);
    const { deadLetters } = await db.store({ ...batchOf([]), deadLetters: batch.deadLetters });
    expect(deadLetters).toEqual(batch.deadLetters);
  });

  test('the reason of a dead letter quotes its own row, and no other, which may be of another workspace', async () => {
    const lines = Array.from({ length: 150 }, (_, index) =>
      JSON.stringify({ ...eventRow(), [`user-${index}@example.com`]: 1 }),
    );
    const { deadLetters } = await db.store({ ...batchOf([]), events: messages('events', lines) });
    const quoting = deadLetters.map(({ reason, row }) => {
      const quoted = [...reason.matchAll(/user-\d+/g)].map(([text]) => text);
      for (const text of quoted) expect(row.toString()).toContain(`${text}@`);
      return quoted.length;
    });
    expect(quoting.filter((count) => count > 0)).toHaveLength(100);
  });
});
