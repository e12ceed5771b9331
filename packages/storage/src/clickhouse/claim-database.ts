import type { ClickHouseClient } from '@sluice/shared/clickhouse/client';
import { STATEMENTS } from './statements.ts';

/** The database belongs to another consumer group than KAFKA_GROUP_ID. */
export class GroupMismatch extends Error {
  override readonly name = 'GroupMismatch';
}

/**
 * Makes sure that the writers of one consumer group alone store into the database: epochs keep apart the writers of one
 * group, not two groups. The first writer records its group. Of two groups that start at the same time, at most one goes
 * on: each records its own before it reads them all.
 *
 * @throws {GroupMismatch} when the database belongs to another group
 * @throws ClickHouse's errors
 */
export async function claimDatabase(client: ClickHouseClient, groupId: string): Promise<void> {
  await client.command({ query: STATEMENTS['record-group'].sql, query_params: { group: groupId } });
  await refuseOtherGroups(client, groupId);
}

/** Returns the consumer groups that are recorded. @throws ClickHouse's errors */
export async function readGroups(client: ClickHouseClient): Promise<readonly string[]> {
  const result = await client.query({ query: STATEMENTS['read-groups'].sql, format: 'JSONEachRow' });
  return (await result.json<{ groupId: string }>()).map((row) => row.groupId);
}

/**
 * As {@link claimDatabase}, but records nothing.
 *
 * @throws {GroupMismatch}
 * @throws ClickHouse's errors
 */
export async function refuseOtherGroups(client: ClickHouseClient, groupId: string): Promise<void> {
  const groups = await readGroups(client);
  if (groups.every((group) => group === groupId)) return;
  throw new GroupMismatch(
    groups.length === 1
      ? `the database belongs to the consumer group ${groups[0]}, and KAFKA_GROUP_ID is ${groupId}: set it to ` +
          `${groups[0]}, or use a database of its own (CLICKHOUSE_DATABASE); docs/operate/configuration.md says how to change it`
      : `writers of several consumer groups have stored into the database (${groups.join(', ')}), and it must belong to ` +
          'one; docs/operate/configuration.md says how to choose it',
  );
}
