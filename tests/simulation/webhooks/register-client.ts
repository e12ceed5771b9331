import type { ClickHouseClient } from '@sluice/shared/clickhouse/client';
import type { RegisterTables, Row } from './register-tables.ts';

/** What a client of ClickHouse is called with, as far as webhooks and views do. */
interface Insert {
  readonly table: string;
  readonly values: readonly Row[];
  readonly clickhouse_settings?: { readonly insert_deduplication_token?: string };
}

/** Runs a statement on the tables. @param what for faults that wait for it */
export type RunStatement = <Result>(what: string, effect: (tables: RegisterTables) => Result) => Promise<Result>;

/**
 * Creates a client of the tables, for the methods that webhooks and views call.
 *
 * @param onInsert called with rows that are stored
 */
export function registerClient(
  run: RunStatement,
  onInsert: (table: string, values: readonly Row[]) => void = () => {},
): ClickHouseClient {
  const client = {
    query: async ({ query, query_params = {} }: { query: string; query_params?: Row }) => {
      const rows = await run('read', (tables) => tables.query(query, query_params));
      return { json: async () => rows };
    },
    insert: async ({ table, values, clickhouse_settings }: Insert) => {
      await run(`insert ${table}`, (tables) => {
        if (tables.insert(table, values, clickhouse_settings?.insert_deduplication_token)) onInsert(table, values);
      });
    },
    command: async ({ query }: { query: string }) => {
      await run('remove', (tables) => tables.command(query));
    },
  };
  return client as unknown as ClickHouseClient;
}
