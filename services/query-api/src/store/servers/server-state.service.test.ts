import { createTestClients, type TestClients } from '@sluice/storage/testing/clients';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { asServerState, stateQuery } from './server-state.ts';

const VERSION = 1_700_000_000_000_000;

let db: TestClients;

beforeAll(async () => {
  db = await createTestClients(inject('clickhouseUrl'));
});
afterAll(() => db.close());

/** Returns the users of the deletions that a poll lists. */
async function listed(isReplica: boolean): Promise<string[]> {
  const { sql, params } = stateQuery(60_000, 1, isReplica);
  const result = await db.client.query({ query: sql, query_params: { ...params }, format: 'JSONCompactEachRow' });
  const [row] = await result.json<unknown[]>();
  if (!row) throw new Error('there is no row');
  const { recentDeletions } = asServerState(row as unknown as Parameters<typeof asServerState>[0]);
  return recentDeletions.map(({ user, version }) => `${user} ${version - VERSION}`).sort();
}

test('of a replica, a poll lists the deletions that both tables of deletions have', async () => {
  await db.client.command({
    query: `INSERT INTO pending_deletions (workspace_id, user_id, version, stored_at)
      SELECT 'w', c1, {version:UInt64} + c2, now64(3) FROM values(('both', 2), ('both', 1), ('first', 1), ('older', 5))`,
    query_params: { version: VERSION },
  });
  await db.client.command({
    query: `INSERT INTO user_deletions (workspace_id, user_id, version)
      SELECT 'w', c1, {version:UInt64} + c2 FROM values(('both', 2), ('both', 1), ('older', 4), ('last', 1))`,
    query_params: { version: VERSION },
  });
  expect(await listed(false)).toEqual(['both 2', 'first 1', 'older 5']);
  expect(await listed(true)).toEqual(['both 2']);
});
