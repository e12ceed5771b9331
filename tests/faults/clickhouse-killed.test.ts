import { afterAll, afterEach, beforeAll, test } from 'vitest';
import { type Kill, KilledClickHouse } from '../kit/killed-clickhouse.ts';

const KILLS: readonly Kill[] = [
  { statement: 'store-deletions', nth: 1, months: 0 },
  { statement: 'store-seen-in-events', nth: 1, months: 0 },
  { statement: 'store-events', nth: 2, months: 1 },
];

let clickhouse: KilledClickHouse;

beforeAll(async () => {
  clickhouse = await KilledClickHouse.start();
});
afterEach(() => clickhouse?.repair());
afterAll(() => clickhouse?.[Symbol.asyncDispose]());

test.each(KILLS)(
  'killed in $statement, in system call $nth, when $months months are stored: the batch is stored once',
  async (kill) => {
    await clickhouse.expectStoredOnce(kill);
  },
);
