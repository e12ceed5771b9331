import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { createTestStore, type TestStore } from '../testing/store.ts';
import { isRowError } from './isolate-bad-rows.ts';

let db: TestStore;

beforeAll(async () => {
  db = await createTestStore(inject('clickhouseUrl'));
});
afterAll(() => db.close());

test.each([
  ['no memory is left', 'SELECT groupArray(number) FROM numbers(1000000) SETTINGS max_memory_usage = 1000000'],
  ['it takes too long', 'SELECT sleepEachRow(1) FROM numbers(3) SETTINGS max_execution_time = 0.5, max_block_size = 1'],
  ['a table is missing', 'SELECT 1 FROM no_such_table'],
  ['too much is read', 'SELECT number FROM numbers(1000) SETTINGS max_rows_to_read = 10'],
])('a statement that fails because %s is no fault of its rows', async (_why, query) => {
  const error: unknown = await db.read(query).catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(Error);
  expect(isRowError(error)).toBe(false);
});
