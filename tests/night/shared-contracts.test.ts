import { expect, test } from 'vitest';
import { SHARED_CONTRACTS } from '../simulation/contracts/shared-contracts.ts';
import { realShared } from '../simulation/contracts/shared-engines.ts';

test('what stands in for ClickHouse Cloud does what the simulated replicas do', async () => {
  await using engine = await realShared();
  const failed: string[] = [];
  for (const [contract, check] of Object.entries(SHARED_CONTRACTS)) {
    await check(engine).catch((error: Error) => failed.push(`${contract}: ${error.message}`));
  }
  expect(failed).toEqual([]);
});
