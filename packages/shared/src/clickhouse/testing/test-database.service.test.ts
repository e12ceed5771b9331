import { randomUUID } from 'node:crypto';
import { expect, inject, test } from 'vitest';
import { createClickHouse } from '../client.ts';
import { ADMINISTRATOR } from './test-accounts.ts';
import { createDatabase } from './test-database.ts';

test('what a process left that was killed while it created a database is in nobody’s way', async () => {
  const url = inject('clickhouseUrl');
  const name = `test_${randomUUID().replaceAll('-', '')}`;
  const options = { application: 'test-database-test', requestTimeoutMs: 60_000, connectionsMax: 1 };
  await using server = createClickHouse(
    { CLICKHOUSE_URL: url, CLICKHOUSE_DATABASE: 'default', ...ADMINISTRATOR },
    options,
  );
  await server.command({ query: `CREATE DATABASE ${name}_unfinished` });
  await server.command({ query: `CREATE TABLE ${name}_unfinished.events (uuid UUID) ORDER BY uuid` });
  const database = await createDatabase(url, name);
  try {
    const found = await server.query({
      query: `SELECT database = {name:String}, count() > 1 FROM system.tables WHERE startsWith(database, {name:String}) GROUP BY database`,
      query_params: { name },
      format: 'JSONCompactEachRow',
    });
    expect(await found.json()).toEqual([[1, 1]]);
  } finally {
    await database.release();
  }
});
