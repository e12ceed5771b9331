import type { ClickHouseClient } from '@sluice/shared/clickhouse/client';
import type { Migration } from '@sluice/shared/clickhouse/migrate';
import { createdTable } from '@sluice/shared/clickhouse/migration-waves';
import { Refused } from '@sluice/shared/config/command-line';
import { type Identity, recordState } from '@sluice/storage/clickhouse/identity';
import type { DatabaseOwner } from '@sluice/storage/clickhouse/own-database';
import { recordFence } from '@sluice/storage/clickhouse/ownership';
import { STATEMENTS } from '@sluice/storage/clickhouse/statements';
import type { LogCheck } from './log-check.ts';
import type { Manifest } from './manifest.ts';

/** What a backup of another server says of that one. None of it is true of the server that it is restored to. */
const OF_ONE_SERVER = [
  ...['writer_groups', 'writer_epochs', 'writer_halts', 'database_identity', 'copies', 'server_comparisons'],
];

/** Whose a backup is. */
export interface BackupOwner {
  readonly manifest: Manifest;
  /** What the database says of itself; undefined in a backup from before it said so. */
  readonly identity: Identity | undefined;
}

/**
 * Returns whether a backup is that of another server than the one it is restored to.
 *
 * @param groups those of all servers in the file; undefined without one
 * @throws {Refused} when it is that of another installation, or of other partitions
 */
export function isOfAnotherServer(
  { manifest, identity }: BackupOwner,
  owner: DatabaseOwner,
  groups: readonly string[] | undefined,
): boolean {
  const { groupId } = manifest;
  const hasOwnName = !identity || identity.server === '' || owner.server === '' || identity.server === owner.server;
  const hasOwnGroup = groupId === '' || groupId === owner.group;
  if (!hasOwnGroup && !groups) {
    throw new Refused(`The backup is of the group ${groupId}, and KAFKA_GROUP_ID is ${owner.group}.`);
  }
  if (!hasOwnGroup && !identity?.server && !groups?.includes(groupId)) {
    throw new Refused(`The backup is of the group ${groupId}, which is that of no server in CLICKHOUSE_SERVERS_FILE.`);
  }
  const { partitions = 'all' } = identity ?? {};
  if (partitions !== owner.partitions) {
    throw new Refused(
      `The backup is of a server with the partitions ${partitions}, and this one stores ${owner.partitions}.`,
    );
  }
  if (identity?.state === 'filling') {
    throw new Refused('The backup was made while its server was being filled: it has a part of the rows only.');
  }
  return !hasOwnName || !hasOwnGroup;
}

/**
 * Makes a restored database that of another server than the backup's: it gets an id of its own, and nothing is left of the
 * other server's group. A writer of the group that froze before is fenced.
 *
 * @param migrations those of the backup
 * @throws ClickHouse's errors
 */
export async function changeOwner(
  restored: ClickHouseClient,
  migrations: readonly Migration[],
  owner: DatabaseOwner,
): Promise<void> {
  const tables = migrations.map(createdTable);
  for (const table of OF_ONE_SERVER) if (tables.includes(table)) await empty(restored, table);
  const { group, server, partitions } = owner;
  await restored.command({ query: STATEMENTS['record-group'].sql, query_params: { group } });
  if (tables.includes('database_identity')) {
    const query_params = { server, group, partitions };
    await restored.command({ query: STATEMENTS['record-identity'].sql, query_params });
  }
  await recordFence(restored, group);
}

/**
 * Records, where there is a file of servers, that messages since the backup are gone, or those that were given up before it.
 *
 * @throws ClickHouse's errors
 */
export async function recordWhatIsMissing(
  restored: ClickHouseClient,
  { identity, isOfAnother, logs }: { readonly isOfAnother: boolean; readonly logs: LogCheck } & BackupOwner,
  { server }: DatabaseOwner,
): Promise<void> {
  if (!identity || server === '') return;
  const gaps = logs.gaps.map(({ gap }) => `${gap.detail}.`);
  if (gaps.length > 0) await recordState(restored, 'incomplete', gaps.join(' '));
  else if (isOfAnother && identity.state === 'incomplete') await recordState(restored, 'incomplete', identity.detail);
}

async function empty(restored: ClickHouseClient, table: string): Promise<void> {
  await restored.command({ query: 'TRUNCATE TABLE {table:Identifier}', query_params: { table } });
}
