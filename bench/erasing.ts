import { randomUUID } from 'node:crypto';
import { createLogger } from '@sluice/shared/log';
import type { ChangeRow } from '@sluice/shared/rows';
import { until } from '@sluice/shared/testing/until';
import { Erasure } from '../services/writer/src/erasure/erasure.ts';
import type { BenchDatabase, BenchEngine, Cost } from './engine.ts';
import { identifierWith, readRows, WORKSPACE } from './filter-queries.ts';

const TIMEOUT_MS = 600_000;

/** Deletes the user of a workspace who has about this many events, and erases the user as the writer does. */
export async function eraseUser(engine: BenchEngine, database: BenchDatabase, events: number): Promise<Cost> {
  const user = await identifierWith(database.client, WORKSPACE, 'user_id', events);
  await database.store({ events: [], changes: [deletionOf(user)], deadLetters: [] });
  const config = { ERASURE_DELAY_MS: 0, ERASURE_INTERVAL_MS: 500, ERASURE_GATHER_MS: 0 };
  const erasure = new Erasure(config, database.client, randomUUID(), createLogger('bench', 'warn'));
  erasure.setOwner(true);
  const cost = await engine.measure(async () => {
    erasure.start();
    const pending = async () => (await readRows(database.client, 'SELECT 1 FROM pending_deletions LIMIT 1')).length;
    await until('the user to be erased', async () => (await pending()) === 0, TIMEOUT_MS);
  });
  await erasure.stop();
  return cost;
}

function deletionOf(id: string) {
  const deletion: ChangeRow = {
    workspace_id: WORKSPACE,
    kind: 'user',
    id,
    operation: 'delete',
    version: Date.now() * 1_000,
    change_id: randomUUID(),
  };
  const value = Buffer.from(`${JSON.stringify(deletion)}\n`);
  return { kind: 'changes', topic: 'bench.changes', partition: 0, offset: '0', value } as const;
}
