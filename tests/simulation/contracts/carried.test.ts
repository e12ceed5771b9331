import { describe, inject, test } from 'vitest';
import { CARRIED_CONTRACTS } from './carried-contracts.ts';
import { realClickHouse, SLOWNESS_MS, simulatedReplica } from './clickhouse-engines.ts';

const contracts = Object.entries(CARRIED_CONTRACTS);

describe('a simulated replica that shares its rows', () => {
  test.each(contracts)('%s', async (_, check) => {
    await using engine = simulatedReplica(1, SLOWNESS_MS);
    await engine.run(() => check(engine));
  });
});

describe.concurrent('ClickHouse', () => {
  test.each(contracts)('%s', async (_, check) => {
    await using engine = await realClickHouse(inject('clickhouseUrl'));
    await engine.recordReplica();
    await engine.run(() => check(engine));
  });
});
