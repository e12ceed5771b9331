import { testKills } from '../kit/killed-clickhouse.ts';

testKills([
  { statement: 'store-properties', nth: 1, months: 0 },
  { statement: 'store-seen-in-changes', nth: 1, months: 0 },
  { statement: 'store-events', calls: ['mkdir', 'mkdirat'], nth: 1, months: 0 },
  { statement: 'store-events', nth: 1, months: 0 },
  { statement: 'store-events', nth: 3, months: 2 },
]);
