import type { Migration } from '@sluice/shared/clickhouse/migrate';
import { createdTable } from '@sluice/shared/clickhouse/migration-waves';
import type { BackupLocation } from './backup-location.ts';

/**
 * The parts of a backup, in the order in which they are made. ClickHouse copies the tables of one BACKUP at slightly
 * different moments, while writers store. The order of the parts is the reverse of the order in which writers and erasures
 * change the tables, so a part never lacks what a part before it depends on (decision 0055):
 *
 * - `state`: the manifest, the deletions that were not erased yet, which an erasure removes last, and those whose visitors are
 *   deleted, too, which is noted after these deletions are stored.
 * - `events`: a writer stores them last.
 * - `tables`: everything that is stored before an event.
 */
export const PARTS = ['state', 'events', 'tables'] as const;

export type Part = (typeof PARTS)[number];

const STATE_TABLES: readonly string[] = ['backups', 'pending_deletions', 'identity_deletions', 'schema_migrations'];

/** A statement with its parameters. */
export interface BackupStatement {
  readonly sql: string;
  readonly params: Readonly<Record<string, string>>;
}

/** Returns the tables of a part in a database that has these migrations. */
export function tablesOf(part: Part, migrations: readonly Migration[]): string[] {
  const created = migrations.map(createdTable).filter((table) => table !== undefined);
  return ['schema_migrations', ...created].filter((table) => partOf(table) === part);
}

function partOf(table: string): Part {
  if (table === 'events') return 'events';
  return STATE_TABLES.includes(table) ? 'state' : 'tables';
}

/** In a backup, the database is always `sluice`, so that it can be restored under another name. */
export function backupOf(
  part: Part,
  tables: readonly string[],
  { engine, pathOf, params }: BackupLocation,
): BackupStatement {
  const list = tables.map((table) => `TABLE ${table} AS sluice.${table}`).join(', ');
  return { sql: `BACKUP ${list} TO ${engine} ASYNC`, params: { ...params, path: pathOf(part) } };
}

export interface RestoreOptions {
  /** `structure`: without the rows. Default: `rows`. */
  readonly what?: 'structure' | 'rows';
  /** Whether the tables are there, with engines that may be others than those of the backup. Default: RESTORE creates them. */
  readonly areThere?: boolean;
}

/** Restores tables into the database of the connection. */
export function restoreOf(
  part: Part,
  tables: readonly string[],
  { engine, pathOf, params }: BackupLocation,
  { what = 'rows', areThere = false }: RestoreOptions = {},
): BackupStatement {
  const list = tables.map((table) => `TABLE sluice.${table} AS ${table}`).join(', ');
  const settings = [
    ...(what === 'structure' ? ['structure_only = true'] : []),
    ...(areThere ? ['allow_different_table_def = true'] : []),
  ];
  // Without a space between SETTINGS and ASYNC, ClickHouse reads ASYNC as one of the settings.
  const ending = settings.length === 0 ? 'ASYNC' : `SETTINGS ${settings.join(', ')}, async = true`;
  return { sql: `RESTORE ${list} FROM ${engine} ${ending}`, params: { ...params, path: pathOf(part) } };
}
