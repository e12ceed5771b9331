import { randomUUID } from 'node:crypto';
import { makeTempDir } from '@sluice/local-stack/testing/temp-dir';
import { Replicas } from '@sluice/storage/clickhouse/replicas';
import { expect, test } from 'vitest';
import { longInsert, REPLICA_CONTRACTS } from '../simulation/contracts/replica-contracts.ts';
import { realReplicas } from '../simulation/contracts/replica-engines.ts';

test('two real replicas do what the simulated ones do', async () => {
  await using dir = await makeTempDir();
  await using engine = await realReplicas(dir.path);
  const failed: string[] = [];
  for (const [contract, check] of Object.entries(REPLICA_CONTRACTS)) {
    await check(engine).catch((error: Error) => failed.push(`${contract}: ${error.message}`));
  }
  expect(failed).toEqual([]);

  // Replicas are settled when no insert is running any more that began before.
  const groupPrefix = `${randomUUID()}/`;
  const running = await longInsert(engine, `${groupPrefix}1.1/`);
  const clients = { own: engine.connect(1), others: [engine.connect(0)] };
  const replicas = new Replicas({ ...clients, writerId: 'writer', groupPrefix, statementTimeoutMs: 20_000 });
  await replicas.settle(0, new AbortController().signal);
  expect(await engine.isRunning(0, groupPrefix)).toBe(false);
  expect(await running.ended).toBe('UNKNOWN_STATUS_OF_INSERT');
  await engine.setFetching(true);
});
