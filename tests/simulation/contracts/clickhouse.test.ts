import { describe, inject, test } from 'vitest';
import { CLICKHOUSE_CONTRACTS } from './clickhouse-contracts.ts';
import { realClickHouse, SLOWNESS_MS, simulatedClickHouse } from './clickhouse-engines.ts';

/** Each statement is tried on both: the simulator is worth as much as its servers behave like the real ones. */
const contracts = Object.entries(CLICKHOUSE_CONTRACTS);

describe('the simulated ClickHouse', () => {
  test.each(contracts)('%s', async (_, check) => {
    await using engine = simulatedClickHouse(1, SLOWNESS_MS);
    await engine.run(() => check(engine));
  });
});

// Together, because many of them wait for an insert.
describe.concurrent('ClickHouse', () => {
  test.each(contracts)('%s', async (_, check) => {
    await using engine = await realClickHouse(inject('clickhouseUrl'));
    await engine.run(() => check(engine));
  });
});
