/** The databases that the accounts below may use. */
export const TEST_DATABASES = 'test_*';

/** The accounts of `deploy/clickhouse/accounts.sql` in the engines of tests, each with its password. */
const PASSWORDS = {
  sluice_migrate: 'migrate of tests',
  sluice_writer: 'writer of tests',
  sluice_query: 'query of tests',
  sluice_webhooks: 'webhooks of tests',
} as const;

/** What the engines of tests are started with. They may be filled from each other, as several servers are. */
export const TEST_ACCOUNTS = {
  databases: TEST_DATABASES,
  passwords: PASSWORDS,
  added: { sluice_migrate: ['GRANT READ ON REMOTE'] },
} as const;

/** With which services create tables. */
export const MIGRATE_ACCOUNT = {
  CLICKHOUSE_MIGRATE_USER: 'sluice_migrate',
  CLICKHOUSE_MIGRATE_PASSWORD: PASSWORDS.sluice_migrate,
} as const;

/** How the writer logs in. */
export const WRITER_ACCOUNT = {
  CLICKHOUSE_USER: 'sluice_writer',
  CLICKHOUSE_PASSWORD: PASSWORDS.sluice_writer,
  ...MIGRATE_ACCOUNT,
} as const;

/** How query-api logs in. The writer creates the tables for it. */
export const QUERY_ACCOUNT = {
  CLICKHOUSE_USER: 'sluice_query',
  CLICKHOUSE_PASSWORD: PASSWORDS.sluice_query,
} as const;

/** How query-api logs in to store the state of webhooks. */
export const WEBHOOKS_ACCOUNT = {
  CLICKHOUSE_WEBHOOKS_USER: 'sluice_webhooks',
  CLICKHOUSE_WEBHOOKS_PASSWORD: PASSWORDS.sluice_webhooks,
} as const;

/** How the tests themselves log in. */
export const ADMINISTRATOR = { CLICKHOUSE_USER: 'default', CLICKHOUSE_PASSWORD: '' } as const;
