import type { ClickHouseClient } from '@sluice/shared/clickhouse/client';

// The newest row counts, also after ClickHouse's clock was set back.
const NEW_ID = `
INSERT INTO database_identity (id, server, group_id, partitions, state, detail, recorded_at)
SELECT
  generateUUIDv4(), server, group_id, partitions, state, detail,
  greatest(now64(6), recorded_at + toIntervalMicrosecond(1))
FROM database_identity
ORDER BY recorded_at DESC, id
LIMIT 1`;

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

/** Gives a database another id: streams do not go on in it by what they have read before. @throws ClickHouse's errors */
export async function renewId(client: ClickHouseClient): Promise<void> {
  await client.command({ query: NEW_ID });
}
