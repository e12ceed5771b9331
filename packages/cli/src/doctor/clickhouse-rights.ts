import { readMigrations } from '@sluice/shared/clickhouse/migrate';
import { createdTable } from '@sluice/shared/clickhouse/migration-waves';

/** What an account is used for. */
export type Role = 'writer' | 'migrate' | 'query' | 'webhooks';

/**
 * What each account needs, as `deploy/clickhouse/accounts.sql` gives it: on the database, on other things of the server. What
 * backups and copies of a server need besides is not among them.
 */
export const RIGHTS: Readonly<
  Record<Role, { readonly database: readonly string[]; readonly server: readonly string[] }>
> = {
  migrate: {
    database: [
      ...['CREATE DATABASE', 'CREATE TABLE', 'SHOW TABLES', 'SELECT', 'INSERT'],
      ...['ALTER COLUMN', 'ALTER INDEX', 'ALTER STATISTICS', 'ALTER PROJECTION', 'ALTER CONSTRAINT'],
      ...['ALTER TTL', 'ALTER MATERIALIZE TTL', 'ALTER SETTINGS', 'ALTER MODIFY COMMENT'],
    ],
    server: [
      ...['MergeTree', 'ReplacingMergeTree', 'AggregatingMergeTree'].map((engine) => `TABLE ENGINE ON ${engine}`),
      ...['mutations', 'merges', 'parts', 'processes'].map((table) => `SELECT ON system.${table}`),
    ],
  },
  writer: {
    database: ['SHOW TABLES', 'SELECT', 'INSERT', 'ALTER DELETE'],
    server: [
      'CREATE TEMPORARY TABLE ON *.*',
      'TABLE ENGINE ON Memory',
      ...['processes', 'mutations', 'parts', 'disks', 'merge_tree_settings'].map(
        (table) => `SELECT ON system.${table}`,
      ),
    ],
  },
  query: { database: ['SELECT'], server: [] },
  webhooks: { database: ['SELECT', 'INSERT', 'ALTER DELETE'], server: [] },
};

/** The table with the secrets of webhooks, which two accounts may not read. */
const SECRETS_TABLE = 'webhooks';

/** Returns what an account needs, each as a GRANT says it. */
export async function rightsOf(role: Role, database: string): Promise<readonly string[]> {
  const { database: ofDatabase, server } = RIGHTS[role];
  const tables = (await readMigrations()).map(createdTable).filter((table) => table !== undefined);
  const isOf: Readonly<Record<Role, (table: string) => boolean>> = {
    migrate: () => true,
    writer: (table) => table !== SECRETS_TABLE,
    query: (table) => table !== SECRETS_TABLE,
    webhooks: (table) => /^(webhook|console)/.test(table),
  };
  const own = [...new Set(tables)].filter(isOf[role]);
  const onDatabase = (right: string) =>
    role === 'migrate' ? [`${right} ON ${database}.*`] : own.map((table) => `${right} ON ${database}.${table}`);
  return [...ofDatabase.flatMap(onDatabase), ...server];
}
