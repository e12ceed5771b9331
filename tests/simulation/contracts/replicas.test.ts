import { test } from 'vitest';
import { REPLICA_CONTRACTS } from './replica-contracts.ts';
import { simulatedReplicas } from './replica-engines.ts';

test.each(Object.entries(REPLICA_CONTRACTS))('simulated replicas: %s', async (_, check) => {
  await using engine = simulatedReplicas(1);
  await engine.run(() => check(engine));
});
