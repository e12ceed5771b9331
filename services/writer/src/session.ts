import { randomUUID } from 'node:crypto';
import { Readable } from 'node:stream';
import type { ClickHouseSettings } from '@clickhouse/client';
import type { ClickHouseClient } from '@sluice/shared/clickhouse/client';
import type { Statement } from './statements.ts';

/** How long ClickHouse keeps an abandoned session, and so its temporary tables, in seconds. */
const SESSION_TIMEOUT_SECONDS = 60;

/** A session of ClickHouse: its temporary tables are its own, and are gone when it is closed. */
export interface Session {
  /** Runs a statement, with settings of its own besides those of the session. */
  run(statement: Statement, parameters?: Readonly<Record<string, unknown>>, own?: ClickHouseSettings): Promise<void>;
  /** Sends bytes to an INSERT, and gives the number of rows they held. */
  load(statement: Statement, chunks: readonly Uint8Array[]): Promise<number>;
  /** The rows of a SELECT. */
  read<Row>(statement: Statement, parameters?: Readonly<Record<string, unknown>>): Promise<Row[]>;
  close(): Promise<void>;
}

/**
 * Opens a session whose statements all bear query ids that begin with `queryIdPrefix`.
 *
 * @param statementTimeoutMs after which ClickHouse itself gives a statement up
 */
export function openSession(client: ClickHouseClient, queryIdPrefix: string, statementTimeoutMs: number): Session {
  const sessionId = randomUUID();
  const settings = {
    session_timeout: SESSION_TIMEOUT_SECONDS,
    // An answer means that the statement is done, whole.
    wait_end_of_query: 1,
    // Finding where rows end, to share a few megabytes among threads, costs more than it gains.
    input_format_parallel_parsing: 0,
    max_execution_time: statementTimeoutMs / 1_000,
    // Rows are unique or folded when they are read, so merging a block before it is written would gain nothing.
    optimize_on_insert: 0,
  } as const;
  const common = (statement: Statement) => ({
    query: statement.sql,
    session_id: sessionId,
    query_id: `${queryIdPrefix}/${statement.name}/${randomUUID()}`,
    clickhouse_settings: settings as unknown as ClickHouseSettings,
  });

  return {
    async run(statement, parameters = {}, own = {}) {
      const { clickhouse_settings, ...rest } = common(statement);
      const all = { ...clickhouse_settings, ...own };
      await client.command({ ...rest, query_params: { ...parameters }, clickhouse_settings: all });
    },
    async load(statement, chunks) {
      const values = Readable.from(chunks, { objectMode: false });
      const { stream, summary } = await client.exec({ ...common(statement), values });
      for await (const _ of stream);
      return Number(summary?.written_rows ?? 0);
    },
    async read<Row>(statement: Statement, parameters: Readonly<Record<string, unknown>> = {}) {
      const result = await client.query({
        ...common(statement),
        query_params: { ...parameters },
        format: 'JSONEachRow',
      });
      return await result.json<Row>();
    },
    async close() {
      // A parameter of the HTTP interface, which travels where settings do.
      const closing = { ...settings, close_session: 1 } as unknown as ClickHouseSettings;
      await client.command({ query: 'SELECT 1', session_id: sessionId, clickhouse_settings: closing });
    },
  };
}
