import { randomUUID } from 'node:crypto';
import { createLogger } from '@sluice/shared/log';
import type { ChangeRow } from '@sluice/shared/rows';
import { Erasure } from '../services/writer/src/erasure/erasure.ts';
import { until } from '../tests/support/service.ts';
import type { BenchDatabase, BenchEngine, Cost } from './engine.ts';
import { WORKSPACE } from './filter-queries.ts';

const TIMEOUT_MS = 600_000;

/** Deletes the user of a workspace who has about this many events, and erases the user as the writer does. */
export async function eraseUser(engine: BenchEngine, database: BenchDatabase, events: number): Promise<Cost> {
  const [user] = await readRows<{ id: string }>(
    database,
    `SELECT user_id AS id FROM events WHERE workspace_id = {workspace:String} AND user_id != ''
     GROUP BY id ORDER BY abs(toInt64(count()) - {events:Int64}), id LIMIT 1`,
    { events },
  );
  await database.store({ events: [], changes: [deletionOf(user?.id ?? '')], unreadable: [] });
  const config = { ERASURE_DELAY_MS: 0, ERASURE_INTERVAL_MS: 500, ERASURE_GATHER_MS: 0 };
  const erasure = new Erasure(config, database.client, randomUUID(), createLogger('bench', 'warn'));
  erasure.setOwner(true);
  const cost = await engine.measure(async () => {
    erasure.start();
    const pending = async () => (await readRows(database, 'SELECT 1 FROM pending_deletions LIMIT 1')).length;
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

async function readRows<Row>(
  { client }: BenchDatabase,
  query: string,
  params: Readonly<Record<string, unknown>> = {},
): Promise<Row[]> {
  const query_params = { ...params, workspace: WORKSPACE };
  return await (await client.query({ query, query_params, format: 'JSONEachRow' })).json<Row>();
}
