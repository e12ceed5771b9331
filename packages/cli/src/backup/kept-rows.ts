import type { ClickHouseClient } from '@sluice/shared/clickhouse/client';
import { readMigrations } from '@sluice/shared/clickhouse/migrate';
import { createdTable } from '@sluice/shared/clickhouse/migration-waves';
import { IS_VISITOR_SQL } from '@sluice/shared/rows/deleted-person';

/** Deletions that the restored database does not have. Its writers erase them again. */
const KEEP_PENDING = `
INSERT INTO pending_deletions (workspace_id, user_id, version, stored_at)
SELECT workspace_id, user_id, max(version) AS newest, now64(3)
FROM {database:Identifier}.{table:Identifier}
GROUP BY workspace_id, user_id
HAVING (workspace_id, user_id, newest) NOT IN (
  SELECT workspace_id, user_id, max(version) FROM user_deletions GROUP BY workspace_id, user_id
)`;

/** As the pending ones: their writers look for the visitors of these users. */
const KEEP_UNSETTLED = `
INSERT INTO identity_deletions (workspace_id, user_id, version)
SELECT workspace_id, user_id, max(version) AS newest
FROM {database:Identifier}.{table:Identifier}
WHERE NOT ${IS_VISITOR_SQL}
GROUP BY workspace_id, user_id
HAVING (workspace_id, user_id, newest) NOT IN (
  SELECT workspace_id, user_id, max(version) FROM user_deletions GROUP BY workspace_id, user_id
)`;

const KEEP_DELETIONS = `
INSERT INTO user_deletions (workspace_id, user_id, version)
SELECT workspace_id, user_id, max(version) FROM {database:Identifier}.{table:Identifier} GROUP BY workspace_id, user_id`;

const KEEP_RETENTION = `
INSERT INTO retention (workspace_id, days, set_at) SELECT workspace_id, days, set_at FROM {database:Identifier}.retention`;

/** All settings begin anew: what the writers of today would have erased long ago is kept for RETENTION_DELAY_MS more. */
const RESTART_RETENTION = `
INSERT INTO retention (workspace_id, days, set_at)
SELECT workspace_id, days, greatest(now64(6), set_at + toIntervalMicrosecond(1)) FROM retention FINAL`;

const CREATE_OTHERS = `
CREATE TABLE other_deletions (workspace_id String, user_id String, version UInt64)
ENGINE = MergeTree ORDER BY (workspace_id, user_id)`;

const READ_OTHERS = `
SELECT workspace_id, user_id, max(user_deletions.version) AS version
FROM user_deletions GROUP BY workspace_id, user_id FORMAT Native`;

/** Another ClickHouse server that is fed from the same log. */
export interface OtherServer {
  readonly name: string;
  readonly group: string;
  readonly client: ClickHouseClient;
}

/**
 * Takes over the deletions of users from a table of the server. Otherwise users who were deleted since the backup would be
 * visible until the writers have read their deletions again, and for ever where Kafka no longer has them.
 *
 * @throws ClickHouse's errors
 */
export async function keepDeletions(restored: ClickHouseClient, database: string, table: string): Promise<void> {
  const query_params = { database, table };
  await restored.command({ query: await creationOf('identity_deletions') });
  await restored.command({ query: KEEP_UNSETTLED, query_params });
  await restored.command({ query: KEEP_PENDING, query_params });
  await restored.command({ query: KEEP_DELETIONS, query_params });
}

/**
 * Takes over the deletions of users from other servers, as {@link keepDeletions}.
 *
 * @param database of `restored`
 * @returns the names of the servers that do not answer
 * @throws ClickHouse's errors
 */
export async function keepOtherDeletions(
  restored: ClickHouseClient,
  database: string,
  others: readonly Pick<OtherServer, 'name' | 'client'>[],
): Promise<readonly string[]> {
  if (others.length === 0) return [];
  await restored.command({ query: CREATE_OTHERS });
  const away: string[] = [];
  for (const { name, client } of others) {
    const isComplete = await copyDeletions(client, restored);
    // What has arrived of a server that ends meanwhile is taken over as well.
    if (!isComplete) away.push(name);
  }
  await keepDeletions(restored, database, 'other_deletions');
  await restored.command({ query: 'DROP TABLE other_deletions SYNC' });
  return away;
}

/** Returns whether the other server has sent all of them. @throws ClickHouse's errors of the restored database */
async function copyDeletions(other: ClickHouseClient, restored: ClickHouseClient): Promise<boolean> {
  const deletions = await other.exec({ query: READ_OTHERS }).catch(() => undefined);
  if (!deletions) return false;
  let isComplete = true;
  deletions.stream.on('error', () => {
    isComplete = false;
  });
  try {
    const query = 'INSERT INTO other_deletions FORMAT Native';
    const { stream } = await restored.exec({ query, values: deletions.stream });
    for await (const _ of stream);
  } catch (error) {
    if (isComplete) throw error;
  }
  return isComplete;
}

/**
 * Takes over the retention of databases, which is newer, and lets it begin anew.
 *
 * @param present those that have settings
 * @throws ClickHouse's errors
 */
export async function restartRetention(restored: ClickHouseClient, present: readonly string[]): Promise<void> {
  await restored.command({ query: await creationOf('retention') });
  for (const database of present) await restored.command({ query: KEEP_RETENTION, query_params: { database } });
  await restored.command({ query: RESTART_RETENTION });
}

/** Returns the statement that creates a table unless it is there: a backup may be older than the table. */
export async function creationOf(table: string): Promise<string> {
  const creation = (await readMigrations()).find((migration) => createdTable(migration) === table);
  if (!creation) throw new Error(`there is no migration that creates the table ${table}`);
  return creation.sql;
}
