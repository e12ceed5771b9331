import { randomBytes } from 'node:crypto';
import { createLogger } from '@sluice/shared/base/log';
import { migrate, readMigrations } from '@sluice/shared/clickhouse/migrate';
import { createdTable } from '@sluice/shared/clickhouse/migration-waves';
import { ADMINISTRATOR, WRITER_ACCOUNT } from '@sluice/shared/clickhouse/testing/test-accounts';
import { readClickHouse } from './clickhouse.ts';

/**
 * Copies the tables of several servers into another database of the first one, and returns its name.
 *
 * @param url of the first one
 * @param otherPorts where the native protocol of the others is, on this machine
 * @param database the name that the database has on all of them
 */
export async function together(url: string, otherPorts: readonly number[], database: string): Promise<string> {
  const all = `test_together_${randomBytes(4).toString('hex')}`;
  const config = { CLICKHOUSE_URL: url, CLICKHOUSE_DATABASE: all, ...ADMINISTRATOR };
  await migrate({ ...config, ...WRITER_ACCOUNT }, createLogger('test', 'silent'));
  await readClickHouse(url, `SYSTEM STOP MERGES ${all}.events`, { database: all });
  const { CLICKHOUSE_USER: user, CLICKHOUSE_PASSWORD: password } = ADMINISTRATOR;
  const login = `'${user}', '${password}'`;
  for (const table of new Set((await readMigrations()).map(createdTable))) {
    if (table === undefined || table === 'schema_migrations') continue;
    const others = otherPorts.map((port) => `remote('127.0.0.1:${port}', ${database}, ${table}, ${login})`);
    for (const source of [`${database}.${table}`, ...others]) {
      // A hidden row of an event and the visible one have the same key. One server merges them in the order in which they
      // were stored, which is lost here.
      const insert = `INSERT INTO ${all}.${table} SELECT * FROM ${source} SETTINGS optimize_on_insert = 0`;
      await readClickHouse(url, insert, { database: all });
    }
  }
  return all;
}
