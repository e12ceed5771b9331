import { describe, inject, test } from 'vitest';
import { CLICKHOUSE_CONTRACTS } from './clickhouse-contracts.ts';
import { realClickHouse, simulatedClickHouse } from './clickhouse-engines.ts';

/** How long a statement of the simulator takes at most, in milliseconds: long inserts last for seconds, as the real ones. */
const SLOWNESS_MS = 250;

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
