import type { ClickHouseClient } from '@sluice/shared/clickhouse/client';
import { renewId } from '@sluice/storage/clickhouse/identity';

/**
 * A restored database counts its blocks anew: forgets what was recorded with the old numbers, and gives it another id, by which
 * streams know that their positions are of another database.
 *
 * @param tables those of the backup, which may be older than these two
 * @throws ClickHouse's errors
 */
export async function forgetBlockNumbers(client: ClickHouseClient, tables: ReadonlySet<string>): Promise<void> {
  if (tables.has('storing_progress')) await client.command({ query: 'TRUNCATE TABLE storing_progress' });
  if (tables.has('database_identity')) await renewId(client);
}
