import { createdTable } from './migration-waves.ts';

/** Tables of which each replica has its own: which epochs have begun there, which migrations it has, and how far streams may go there. */
export const LOCAL_TABLES = ['writer_epochs', 'schema_migrations', 'stream_order'];

/** Whether each replica has a table for itself. */
export function isLocalTable(table: string): boolean {
  return LOCAL_TABLES.includes(table);
}

/** What replicas agree by. ClickHouse fills in the names: macros of its configuration, and the database and the table. */
const PATH_AND_NAME = "'/clickhouse/tables/{shard}/{database}/{table}', '{replica}'";

/** Returns the statement of a migration for replicated tables: another engine for each table that is not a local one. */
export function replicatedSql(sql: string): string {
  const table = createdTable({ sql });
  if (table === undefined || isLocalTable(table)) return sql;
  return sql.replace(
    /^(ENGINE = )(\w*MergeTree)(?:\(([^)]*)\))?/m,
    (_, before: string, engine: string, args = '') =>
      `${before}Replicated${engine}(${[PATH_AND_NAME, ...(args ? [args] : [])].join(', ')})`,
  );
}

/**
 * Where the statement of a migration runs: `each host`, or `once`, since ClickHouse carries a change of a replicated table, and the
 * rows of an insert, to all replicas; but not the settings of a table, which each replica has for itself.
 */
export function placeOf(sql: string): 'each host' | 'once' {
  const statement = sql.replaceAll(/^--.*\n/gm, '').trimStart();
  if (createdTable({ sql }) !== undefined) return 'each host';
  const [, altered = ''] = /^ALTER TABLE (\w+)/.exec(statement) ?? [];
  return isLocalTable(altered) || /\bMODIFY SETTING\b/.test(statement) ? 'each host' : 'once';
}
