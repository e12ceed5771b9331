import { join } from 'node:path';
import { createClient } from '@clickhouse/client';
import { until } from '@sluice/shared/testing/until';
import { expect, test } from 'vitest';
import { type LocalClickHouse, startClickHouse } from './clickhouse.ts';
import { startKeeper } from './keeper.ts';
import { makeTempDir } from './testing/temp-dir.ts';

async function run(server: LocalClickHouse, query: string): Promise<unknown[]> {
  await using client = Object.assign(createClient({ url: server.url }), {
    [Symbol.asyncDispose]: async () => await client.close(),
  });
  if (query.startsWith('SELECT')) return await (await client.query({ query, format: 'JSONEachRow' })).json();
  await client.command({ query });
  return [];
}

test('two replicas fetch from each other what each stores, merges and changes', async () => {
  await using dir = await makeTempDir();
  await using started = new AsyncDisposableStack();
  const keeper = await startKeeper({ dataDir: join(dir.path, 'keeper') });
  started.defer(() => keeper.kill9());
  const start = async (name: string) => {
    const replica = { keeperPort: keeper.port, shard: '1', name };
    const server = await startClickHouse({ dataDir: join(dir.path, name), name, replica });
    started.defer(() => server.kill9());
    await run(
      server,
      `CREATE TABLE events (n UInt64) ENGINE = ReplicatedMergeTree('/tables/{shard}/{table}', '{replica}') ORDER BY n`,
    );
    return server;
  };
  const one = await start('one');
  const two = await start('two');
  await run(one, 'INSERT INTO events SETTINGS insert_quorum = 2 VALUES (1)');
  await run(two, 'INSERT INTO events SETTINGS insert_quorum = 2 VALUES (2)');
  for (const server of [one, two]) {
    await run(server, 'SYSTEM SYNC REPLICA events');
    expect(await run(server, 'SELECT n FROM events ORDER BY n')).toEqual([{ n: 1 }, { n: 2 }]);
  }
  await run(one, 'ALTER TABLE events DELETE WHERE n = 1 SETTINGS mutations_sync = 2');
  expect(await run(two, 'SELECT n FROM events')).toEqual([{ n: 2 }]);
  await keeper.kill9();
  await expect(run(two, 'INSERT INTO events VALUES (3)')).rejects.toThrow();
  await keeper.restart();
  await until('another session of Keeper', async () => {
    const [replica] = await run(two, 'SELECT is_readonly OR is_session_expired AS is_away FROM system.replicas');
    return replica && (replica as { is_away: number }).is_away === 0;
  });
  await run(two, 'INSERT INTO events VALUES (3)');
});
