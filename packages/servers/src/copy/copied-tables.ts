import type { Migration } from '@sluice/shared/clickhouse/migrate';
import { createdTable } from '@sluice/shared/clickhouse/migration-waves';

/** What a server says of itself, or counts for itself, and what query-api stores, which is on one server. */
export const NOT_COPIED: readonly string[] = [
  ...['schema_migrations', 'backups', 'copies', 'server_comparisons'],
  ...['database_identity', 'storing_progress'],
  ...['writer_groups', 'writer_epochs', 'writer_positions', 'writer_halts'],
  ...['webhooks', 'webhook_states', 'webhook_leases', 'webhook_positions', 'webhook_deliveries', 'console_documents'],
];

/**
 * Copied first. An event that one of them hides is not copied, so they must not be newer than the positions by more than a
 * moment: what is sent again in between is read from Kafka, and counts as a repeat of that event only while it is there.
 * Pending ones come first, so that the other table has all of them.
 */
export const DELETIONS = ['pending_deletions', 'user_deletions'] as const;

/** The tables that are copied after the events. A copied event whose user is missing would never get it. */
export function otherTables(migrations: readonly Migration[]): string[] {
  const first: readonly string[] = ['events', ...DELETIONS, ...NOT_COPIED];
  return migrations.map(createdTable).filter((table) => table !== undefined && !first.includes(table)) as string[];
}
