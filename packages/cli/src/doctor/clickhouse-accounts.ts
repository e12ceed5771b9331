import { migrateAccount, readMigrations } from '@sluice/shared/clickhouse/migrate';
import { createdTable } from '@sluice/shared/clickhouse/migration-waves';
import { type ClickHouseConfig, isReplicated, isShared } from '@sluice/shared/config';
import type { DoctorConfig, ServiceName } from './config.ts';

/** What an account is used for. */
export type Role = 'writer' | 'migrate' | 'query' | 'webhooks';

/** An account that a service logs in with. */
export interface Account {
  /** The variable that names it. */
  readonly variable: string;
  readonly roles: readonly Role[];
  readonly config: ClickHouseConfig;
}

/** Engines of tables, of which replicas need the replicated ones. */
const ENGINES = ['', 'Replicated'].flatMap((replicated) =>
  ['MergeTree', 'ReplacingMergeTree', 'AggregatingMergeTree'].map((engine) => `${replicated}${engine}`),
);

/** What only replicas need. */
const OF_REPLICAS = /Replicated|replicas|SYNC REPLICA/;

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
      'SYSTEM SYNC REPLICA',
    ],
    server: [
      ...ENGINES.map((engine) => `TABLE ENGINE ON ${engine}`),
      ...['mutations', 'merges', 'parts', 'processes'].map((table) => `SELECT ON system.${table}`),
    ],
  },
  writer: {
    database: [
      ...['SHOW TABLES', 'SELECT', 'INSERT', 'ALTER DELETE', 'ALTER UPDATE', 'ALTER MOVE PARTITION'],
      'SYSTEM SYNC REPLICA',
    ],
    server: [
      'CREATE TEMPORARY TABLE ON *.*',
      'TABLE ENGINE ON Memory',
      ...[
        'processes',
        'mutations',
        'parts',
        'disks',
        'storage_policies',
        'moves',
        'merge_tree_settings',
        'replicas',
      ].map((table) => `SELECT ON system.${table}`),
    ],
  },
  query: { database: ['SELECT'], server: ['SELECT ON system.replicas'] },
  webhooks: { database: ['SELECT', 'INSERT', 'ALTER DELETE'], server: [] },
};

/** What is needed besides where replicas share the rows, as `deploy/clickhouse/shared.sql` gives it. */
export const SHARED_RIGHTS: Readonly<Record<Role, readonly string[]>> = {
  migrate: ['Shared', 'SharedReplacing', 'SharedAggregating'].map((kind) => `TABLE ENGINE ON ${kind}MergeTree`),
  writer: ['KILL QUERY ON *.*', 'CLUSTER ON *.*', 'READ ON REMOTE', 'SELECT ON system.zookeeper_connection'],
  query: [],
  webhooks: [],
};

/** What nobody needs there: no statement has a temporary table, and no rows move to another disk. */
const NOT_SHARED = /TEMPORARY TABLE|ON Memory|MOVE PARTITION|system\.moves/;

/** The table with the secrets of webhooks, which two accounts may not read. */
const SECRETS_TABLE = 'webhooks';

/** Returns what an account needs, each as a GRANT says it. */
export async function rightsOf(
  role: Role,
  config: Pick<ClickHouseConfig, 'CLICKHOUSE_DATABASE' | 'CLICKHOUSE_REPLICATION'>,
): Promise<readonly string[]> {
  const { CLICKHOUSE_DATABASE: database } = config;
  const { database: ofDatabase, server } = RIGHTS[role];
  const tables = (await readMigrations()).map(createdTable).filter((table) => table !== undefined);
  const isOf: Readonly<Record<Role, (table: string) => boolean>> = {
    migrate: () => true,
    writer: (table) => table !== SECRETS_TABLE,
    query: (table) => table !== SECRETS_TABLE,
    webhooks: (table) => /^(webhook|console)/.test(table),
  };
  const ofRole = [...new Set(tables)].filter(isOf[role]);
  const onDatabase = (right: string) =>
    role === 'migrate' ? [`${right} ON ${database}.*`] : ofRole.map((table) => `${right} ON ${database}.${table}`);
  const rights = [...ofDatabase.flatMap(onDatabase), ...server];
  if (isReplicated(config)) return rights;
  const own = rights.filter((right) => !OF_REPLICAS.test(right));
  return isShared(config) ? [...own.filter((right) => !NOT_SHARED.test(right)), ...SHARED_RIGHTS[role]] : own;
}

/** Returns the accounts with which services log in to a server. */
export function accountsOf(
  config: DoctorConfig & ClickHouseConfig,
  services: readonly ServiceName[],
): readonly Account[] {
  const [stores, reads] = [services.includes('writer'), services.includes('query-api')];
  const migrate = migrateAccount(config);
  const ofMain: Role[] = [
    ...(stores ? (['writer'] as const) : []),
    ...(stores && migrate === config ? (['migrate'] as const) : []),
    ...(reads ? (['query'] as const) : []),
  ];
  const accounts: Account[] = [{ variable: 'CLICKHOUSE_USER', roles: ofMain, config }];
  if (stores && migrate !== config)
    accounts.push({ variable: 'CLICKHOUSE_MIGRATE_USER', roles: ['migrate'], config: migrate });
  if (!reads) return accounts;
  const { CLICKHOUSE_WEBHOOKS_USER: webhooks, CLICKHOUSE_SQL_USER: sql } = config;
  const as = (user: string, password: string | undefined): ClickHouseConfig =>
    migrateAccount({ ...config, CLICKHOUSE_MIGRATE_USER: user, CLICKHOUSE_MIGRATE_PASSWORD: password });
  // A server of its own for webhooks is not that of events.
  if (webhooks !== undefined && config.CLICKHOUSE_WEBHOOKS_URL === undefined) {
    const ofWebhooks = as(webhooks, config.CLICKHOUSE_WEBHOOKS_PASSWORD);
    const database = config.CLICKHOUSE_WEBHOOKS_DATABASE ?? config.CLICKHOUSE_DATABASE;
    accounts.push({
      ...{ variable: 'CLICKHOUSE_WEBHOOKS_USER', roles: ['webhooks'] },
      config: { ...ofWebhooks, CLICKHOUSE_DATABASE: database },
    });
  }
  // It may change no settings, and reads nothing without the headers of query-api.
  if (sql !== undefined)
    accounts.push({ variable: 'CLICKHOUSE_SQL_USER', roles: [], config: as(sql, config.CLICKHOUSE_SQL_PASSWORD) });
  return accounts;
}
