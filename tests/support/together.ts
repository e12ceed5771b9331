import { randomBytes } from 'node:crypto';
import { migrate, readMigrations } from '@sluice/shared/clickhouse/migrate';
import { createdTable } from '@sluice/shared/clickhouse/migration-waves';
import { ADMINISTRATOR, WRITER_ACCOUNT } from '@sluice/shared/clickhouse/testing/test-accounts';
import { createLogger } from '@sluice/shared/log';
import { readClickHouse } from './clickhouse.ts';

/**
 * Copies the tables of two servers with different partitions into another database of the first one, and returns its name.
 *
 * @param native host and port of the native protocol of the other server
 */
export async function together(url: string, native: string, database: string): Promise<string> {
  const all = `test_together_${randomBytes(4).toString('hex')}`;
  const config = { CLICKHOUSE_URL: url, CLICKHOUSE_DATABASE: all, ...ADMINISTRATOR };
  await migrate({ ...config, ...WRITER_ACCOUNT }, createLogger('test', 'silent'));
  const { CLICKHOUSE_USER: user, CLICKHOUSE_PASSWORD: password } = ADMINISTRATOR;
  const login = `'${user}', '${password}'`;
  for (const table of new Set((await readMigrations()).map(createdTable))) {
    if (table === undefined || table === 'schema_migrations') continue;
    for (const source of [`${database}.${table}`, `remote('${native}', ${database}, ${table}, ${login})`]) {
      await readClickHouse(url, `INSERT INTO ${all}.${table} SELECT * FROM ${source}`, { database: all });
    }
  }
  return all;
}
