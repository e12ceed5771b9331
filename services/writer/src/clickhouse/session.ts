import { randomUUID } from 'node:crypto';
import { Readable } from 'node:stream';
import type { ClickHouseSettings, CommandResult } from '@clickhouse/client';
import type { ClickHouseClient } from '@sluice/shared/clickhouse/client';
import type { Statement } from './statement.ts';

/** How long ClickHouse keeps an abandoned session with its temporary tables, in seconds. */
const SESSION_TIMEOUT_SECONDS = 60;

/** The client's types do not know close_session: it is a parameter of the HTTP interface, sent like a setting. */
const CLOSING = { close_session: 1 } as unknown as ClickHouseSettings;

/** Small chunks are sent together, about this many bytes: each chunk costs as much as some kilobytes. */
const CHUNK_BYTES = 256 * 1_024;

/** A session of ClickHouse. No other session sees its temporary tables, and they are gone when it is closed. */
export interface ClickHouseSession {
  /** Runs a statement. `settings` are added to those of the session. @throws ClickHouse's errors */
  run(
    statement: Statement,
    parameters?: Readonly<Record<string, unknown>>,
    settings?: ClickHouseSettings,
  ): Promise<void>;
  /** As {@link ClickHouseSession.run}, and returns whether it wrote rows; true where ClickHouse does not say. */
  wroteRows(statement: Statement, parameters?: Readonly<Record<string, unknown>>): Promise<boolean>;
  /** As {@link ClickHouseSession.run}, and closes the session. @throws ClickHouse's errors; then it may still be open */
  runLast(
    statement: Statement,
    parameters: Readonly<Record<string, unknown>>,
    settings: ClickHouseSettings,
  ): Promise<void>;
  /** Sends bytes to an INSERT, and returns how many rows they held. @throws ClickHouse's errors */
  load(statement: Statement, chunks: readonly Uint8Array[]): Promise<number>;
  /** Returns the rows of a SELECT. @throws ClickHouse's errors */
  read<Row>(statement: Statement, parameters?: Readonly<Record<string, unknown>>): Promise<Row[]>;
  /** @throws ClickHouse's errors, also while a statement of the session is running */
  close(): Promise<void>;
}

/**
 * Opens a session. The query ids of its statements are `queryIdPrefix`, the name of the statement and a UUID.
 *
 * @param statementTimeoutMs the time after which ClickHouse itself cancels a statement
 */
export function openClickHouseSession(
  client: ClickHouseClient,
  queryIdPrefix: string,
  statementTimeoutMs: number,
): ClickHouseSession {
  const sessionId = randomUUID();
  const sessionSettings = {
    session_timeout: SESSION_TIMEOUT_SECONDS,
    // ClickHouse responds only when the whole statement is done.
    wait_end_of_query: 1,
    // Parsing a few megabytes in parallel costs more than it gains.
    input_format_parallel_parsing: 0,
    max_execution_time: statementTimeoutMs / 1_000,
    // Merging a block before it is written gains nothing: its rows are unique, or queries merge them.
    optimize_on_insert: 0,
  } as unknown as ClickHouseSettings;
  const common = (statement: Statement) => ({
    query: statement.sql,
    session_id: sessionId,
    query_id: `${queryIdPrefix}/${statement.name}/${randomUUID()}`,
    clickhouse_settings: sessionSettings,
  });

  async function send(
    statement: Statement,
    parameters: Readonly<Record<string, unknown>> = {},
    settings: ClickHouseSettings = {},
  ): Promise<CommandResult['summary']> {
    const clickhouse_settings = { ...sessionSettings, ...settings };
    const command = { ...common(statement), query_params: { ...parameters }, clickhouse_settings };
    return (await client.command(command)).summary;
  }

  return {
    async run(statement, parameters, settings) {
      await send(statement, parameters, settings);
    },
    async runLast(statement, parameters, settings) {
      await send(statement, parameters, { ...settings, ...CLOSING });
    },
    async wroteRows(statement, parameters) {
      return (await send(statement, parameters))?.written_rows !== '0';
    },
    async load(statement, chunks) {
      const values = Readable.from(inLargeChunks(chunks), { objectMode: false });
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
      const clickhouse_settings = { ...sessionSettings, ...CLOSING };
      await client.command({ query: 'SELECT 1', session_id: sessionId, clickhouse_settings });
    },
  };
}

function* inLargeChunks(chunks: readonly Uint8Array[]): Generator<Uint8Array> {
  let open: Uint8Array[] = [];
  let bytes = 0;
  for (const chunk of chunks) {
    open.push(chunk);
    bytes += chunk.length;
    if (bytes < CHUNK_BYTES) continue;
    yield open.length === 1 ? chunk : Buffer.concat(open, bytes);
    open = [];
    bytes = 0;
  }
  if (open.length > 0) yield Buffer.concat(open, bytes);
}
