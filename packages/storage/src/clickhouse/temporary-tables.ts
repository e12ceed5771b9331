import type { ClickHouseSettings } from '@clickhouse/client';
import type { ClickHouseClient } from '@sluice/shared/clickhouse/client';
import type { Statement } from './statement.ts';

/** What a statement binds, by name. */
export type Parameters = Readonly<Record<string, unknown>>;

/** Statements that have temporary tables in common: those of a session, or of one whose rows go with each statement. */
export interface TemporaryTables {
  /** Runs a statement. `settings` are added to those of the tables. @throws ClickHouse's errors */
  run(statement: Statement, parameters?: Parameters, settings?: ClickHouseSettings): Promise<void>;
  /** As `run`, and returns whether it wrote rows; true where ClickHouse does not say. */
  wroteRows(statement: Statement, parameters?: Parameters): Promise<boolean>;
  /** As `run`, and closes the tables. @throws ClickHouse's errors; then they may still be open */
  runLast(statement: Statement, parameters: Parameters, settings: ClickHouseSettings): Promise<void>;
  /**
   * Sends the bytes of rows to an INSERT, and returns how many rows it took; `undefined` where ClickHouse does not say.
   *
   * @throws ClickHouse's errors
   */
  load(statement: Statement, chunks: readonly Uint8Array[], parameters?: Parameters): Promise<number | undefined>;
  /** Returns the rows of a SELECT. `settings` are added to those of the tables. @throws ClickHouse's errors */
  read<Row>(statement: Statement, parameters?: Parameters, settings?: ClickHouseSettings): Promise<Row[]>;
  /** Returns the rows of a SELECT one after the other. Nothing else runs meanwhile. @throws ClickHouse's errors, before the first row */
  stream<Row>(statement: Statement, parameters?: Parameters): AsyncGenerator<Row>;
  /**
   * @param server the name of the server on which nothing is to run any more; default: whichever answers
   * @throws ClickHouse's errors, also while a statement is running, or when another server answers
   */
  close(server?: string): Promise<void>;
}

/** Returns the settings of all these statements. @param statementTimeoutMs the time after which ClickHouse itself cancels one */
export function settingsOfStatements(statementTimeoutMs: number): ClickHouseSettings {
  return {
    // ClickHouse responds only when the whole statement is done.
    wait_end_of_query: 1,
    // Parsing a few megabytes in parallel costs more than it gains.
    input_format_parallel_parsing: 0,
    max_execution_time: statementTimeoutMs / 1_000,
    // Merging a block before it is written gains nothing: its rows are unique, or queries merge them.
    optimize_on_insert: 0,
  } as unknown as ClickHouseSettings;
}

/**
 * Works with temporary tables, and closes them. After an error they may stay open for a while.
 *
 * @throws what `work` throws, and ClickHouse's errors
 */
export type UseTemporaryTables = <Result>(
  client: ClickHouseClient,
  queryIdPrefix: string,
  statementTimeoutMs: number,
  work: (tables: TemporaryTables) => Promise<Result>,
) => Promise<Result>;
