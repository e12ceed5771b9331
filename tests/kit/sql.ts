import type { LocalClickHouse } from '@sluice/local-stack/clickhouse';
import { TEST_ACCOUNTS } from '@sluice/shared/clickhouse/testing/test-accounts';
import { ownClickHouse } from './engines.ts';

const PASSWORD = 'sql of tests';

/** The database of {@link clickHouseWithSql}, in which services store. */
export const SQL_DATABASE = 'sluice';

/** What query-api needs for `POST /queries` over {@link clickHouseWithSql}. */
export const SQL_ENV = { CLICKHOUSE_SQL_USER: 'sluice_sql', CLICKHOUSE_SQL_PASSWORD: PASSWORD } as const;

/** Starts a ClickHouse of its own with the accounts and views of deploy/clickhouse/sql. */
export async function clickHouseWithSql(): Promise<LocalClickHouse & AsyncDisposable> {
  return await ownClickHouse({
    accounts: { ...TEST_ACCOUNTS, databases: SQL_DATABASE },
    sql: { database: SQL_DATABASE, password: PASSWORD },
  });
}
