import type { ClickHouseSettings } from '@clickhouse/client';

/** A statement of the writer or of a command. Its name ends up in its query id, by which it can be found in ClickHouse's query log. */
export interface Statement {
  readonly name: string;
  readonly sql: string;
  /** What it does with a temporary table; undefined: it only reads some, or none. */
  readonly step?: TemporaryStep;
}

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
