import { expect, test } from 'vitest';
import { SHARED_CONTRACTS } from './shared-contracts.ts';
import { simulatedShared } from './shared-engines.ts';

test('simulated replicas that share their rows do what is believed of real ones', async () => {
  await using engine = simulatedShared(1);
  const failed: string[] = [];
  for (const [contract, check] of Object.entries(SHARED_CONTRACTS)) {
    await engine.run(() => check(engine)).catch((error: Error) => failed.push(`${contract}: ${error.message}`));
  }
  expect(failed).toEqual([]);
});
