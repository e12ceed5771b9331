import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { changeRow, createTestStore, eventRow, messages, STAGINGS, type TestStore } from '../testing/store.ts';
import { isRowError } from './isolate-bad-rows.ts';

describe.each(STAGINGS)('staging: %s', (staging) => {
  let db: TestStore;

  beforeAll(async () => {
    db = await createTestStore(inject('clickhouseUrl'), undefined, staging);
  });
  afterAll(() => db.close());

  test.each([
    ['no memory is left', 'SELECT groupArray(number) FROM numbers(1000000) SETTINGS max_memory_usage = 1000000'],
    [
      'it takes too long',
      'SELECT sleepEachRow(1) FROM numbers(3) SETTINGS max_execution_time = 0.5, max_block_size = 1',
    ],
    ['a table is missing', 'SELECT 1 FROM no_such_table'],
    ['too much is read', 'SELECT number FROM numbers(1000) SETTINGS max_rows_to_read = 10'],
  ])('a statement that fails because %s is no fault of its rows', async (_why, query) => {
    const error: unknown = await db.read(query).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(Error);
    expect(isRowError(error)).toBe(false);
  });

  const event = () => JSON.stringify(eventRow());
  const change = () => JSON.stringify(changeRow({ id: 'u', operation: 'seen' }));

  /** Lines that ClickHouse takes, all of them or where nothing is beside them, and that are not one row each. */
  const NOT_ROWS: Readonly<Record<string, (row: () => string) => string>> = {
    'a list of a row': (row) => `[${row()}]`,
    'a row and a semicolon': (row) => `${row()};`,
    'a row and a comma': (row) => `${row()},`,
    'a row after a space': (row) => ` ${row()}`,
    'two rows': (row) => row() + row(),
    'two rows and a comma between them': (row) => `${row()},${row()}`,
    'a row and a carriage return': (row) => `${row()}\r`,
  };

  test.each(['nothing', 'a row', 'a row and a dead letter'] as const)(
    'what is not one row is a dead letter, with %s beside it',
    async (besides) => {
      for (const [name, line] of Object.entries(NOT_ROWS)) {
        const lines = ([event, change] as const).map((row) => {
          const beside = { nothing: [], 'a row': [row()], 'a row and a dead letter': [row(), '{"unknown":1}'] }[
            besides
          ];
          return [...beside, line(row)];
        });
        const [events = [], changes = []] = lines;
        const batch = { events: messages('events', events), changes: messages('changes', changes), deadLetters: [] };
        const { deadLetters } = await db.store(batch);
        const found = deadLetters.map(({ row }) => row.toString());
        expect(found, name).toEqual(expect.arrayContaining(lines.map((of) => of.at(-1))));
        expect(found, name).toHaveLength(besides === 'a row and a dead letter' ? 4 : 2);
      }
    },
  );

  test('empty lines are no rows, and are ignored', async () => {
    const [message] = messages('events', [event()]);
    if (!message) throw new Error('there is no message');
    const spaced = { ...message, value: Buffer.from(`\n${message.value}\n\n${event()}`) };
    const stored = await db.store({ events: [spaced], changes: [], deadLetters: [] });
    expect(stored).toMatchObject({ rows: 2, deadLetters: [] });
  });
});
