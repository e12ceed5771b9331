import { testKills } from '../kit/killed-clickhouse.ts';

testKills([
  { statement: 'store-deletions', nth: 1, months: 0 },
  { statement: 'store-seen-in-events', nth: 1, months: 0 },
  { statement: 'store-events', nth: 2, months: 1 },
]);
