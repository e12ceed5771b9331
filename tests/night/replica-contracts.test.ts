import { makeTempDir } from '@sluice/local-stack/testing/temp-dir';
import { expect, test } from 'vitest';
import { REPLICA_CONTRACTS } from '../simulation/contracts/replica-contracts.ts';
import { realReplicas } from '../simulation/contracts/replica-engines.ts';

test('two real replicas do what the simulated ones do', async () => {
  await using dir = await makeTempDir();
  await using engine = await realReplicas(dir.path);
  const failed: string[] = [];
  for (const [contract, check] of Object.entries(REPLICA_CONTRACTS)) {
    await check(engine).catch((error: Error) => failed.push(`${contract}: ${error.message}`));
  }
  expect(failed).toEqual([]);
});
