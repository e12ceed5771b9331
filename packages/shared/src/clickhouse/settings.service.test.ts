import { expect, inject, onTestFinished, test } from 'vitest';
import { createClickHouse } from './client.ts';
import { ADMINISTRATOR } from './testing/test-accounts.ts';

test('where replicas share their rows, each request carries what that needs, in place of the pinned settings', async () => {
  const config = {
    ...{ CLICKHOUSE_URL: inject('clickhouseUrl'), CLICKHOUSE_DATABASE: 'default', ...ADMINISTRATOR },
    CLICKHOUSE_REPLICATION: 'shared' as const,
  };
  const client = createClickHouse(config, { application: 'test', requestTimeoutMs: 60_000, connectionsMax: 1 });
  onTestFinished(() => client.close());
  const expected = {
    alter_sync: '3',
    distributed_ddl_output_mode: 'throw',
    insert_keeper_max_retries: '0',
    mutations_sync: '3',
    select_sequential_consistency: '1',
    skip_unavailable_shards: '0',
  };
  const result = await client.query({
    query: 'SELECT name, value FROM system.settings WHERE name IN {names:Array(String)}',
    query_params: { names: Object.keys(expected) },
    format: 'JSONCompactEachRow',
  });
  expect(Object.fromEntries(await result.json<[string, string]>())).toEqual(expected);
});
