import type { ClickHouseSettings } from '@clickhouse/client';
import type { ClickHouseClient } from '@sluice/shared/clickhouse/client';
import type { Statement } from './statements.ts';

/** What a statement binds, by name. */
export type Parameters = Readonly<Record<string, unknown>>;

/**
 * A temporary table: rows that some statements have in common, and that nobody else sees.
 */
export interface TemporaryTable {
  readonly name: string;
  /** The columns, each with its type: those of native-blocks.ts. */
  readonly columns: Readonly<Record<string, string>>;
  /** Whether the order of its rows matters. */
  readonly isOrdered?: boolean;
}

/** Rows in the format JSONEachRow, as a statement reads them from a table. */
export interface JsonRows {
  /** What the statement names the table. */
  readonly name: string;
  /** The fields that a row may have, each with its type. One that it lacks has the default of the type; of a Nullable one it is NULL. */
  readonly fields: Readonly<Record<string, string>>;
}

/**
 * What a statement does with a temporary table, for those who keep the rows themselves (`carried-tables.ts`). A session runs the text of
 * the statement, and needs none of this.
 */
export type TemporaryStep =
  | { readonly does: 'create'; readonly table: TemporaryTable }
  /** Replaces the rows by those of the SELECT, or adds these. */
  | { readonly does: 'replace' | 'append'; readonly table: TemporaryTable; readonly select: string }
  /** Adds what the SELECT makes of the rows that are sent along. */
  | {
      readonly does: 'load';
      readonly table: TemporaryTable;
      readonly select: string;
      readonly rows: JsonRows;
      readonly settings?: ClickHouseSettings;
    }
  /** Stores rows that are sent along, with another text. */
  | { readonly does: 'store'; readonly sql: string; readonly rows: JsonRows };

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

/**
 * Returns a statement that fills a table from a SELECT, or drops rows of it, with its {@link TemporaryStep}. The text of the statement stays.
 *
 * @throws {Error} when the statement does nothing of that
 */
export function filling(statement: Statement, table: TemporaryTable): Statement {
  const after = (beginning: string) => {
    const rest = statement.sql.replace(new RegExp(`^${beginning}\\s`, 'm'), '');
    return rest === statement.sql ? undefined : rest;
  };
  const replacing =
    after(`CREATE TEMPORARY TABLE ${table.name} ENGINE = Memory AS`) ??
    after(`CREATE OR REPLACE TEMPORARY TABLE ${table.name} ENGINE = Memory AS`);
  const adding = after(`INSERT INTO ${table.name}`);
  const dropped = after(`ALTER TABLE ${table.name} DELETE\nWHERE`);
  const keeping = dropped && `SELECT * FROM ${table.name} WHERE NOT (\n${dropped}\n)`;
  const select = replacing ?? adding ?? keeping;
  if (select === undefined) throw new Error(`${statement.name} does not fill the table ${table.name}`);
  const does = adding === undefined ? 'replace' : 'append';
  return { ...statement, step: { does, table, select: withColumns(table, select) } };
}

/** A SELECT may return a column with another type, such as LowCardinality. One thread keeps the order of rows. */
function withColumns({ columns, isOrdered }: TemporaryTable, select: string): string {
  const values = Object.entries(columns).map(([name, type]) => `CAST(${name} AS ${type}) AS ${name}`);
  const settings = isOrdered ? '\nSETTINGS max_threads = 1' : '';
  return `SELECT ${values.join(', ')} FROM (\n${select}\n)${settings}`;
}

/**
 * Returns an INSERT of the rows in its body with its {@link TemporaryStep}: the same of rows that are sent beside it. The text of the
 * statement stays.
 *
 * @throws {Error} when the statement has other fields
 */
export function storingInput(statement: Statement, fields: JsonRows['fields']): Statement {
  const { name, sql } = statement;
  const structure = Object.entries(fields).map(([field, type]) => `${field} ${type}`);
  const input = `FROM input('${structure.join(', ')}')\n`;
  const format = '\nFORMAT JSONEachRow';
  if (!sql.includes(input) || !sql.endsWith(format))
    throw new Error(`${name} stores other fields than ${structure.join(', ')}`);
  const text = sql.slice(0, -format.length).replace(input, 'FROM sent_rows\n');
  return { ...statement, step: { does: 'store', sql: text, rows: { name: 'sent_rows', fields } } };
}
