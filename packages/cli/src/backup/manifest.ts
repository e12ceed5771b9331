import type { ClickHouseClient } from '@sluice/shared/clickhouse/client';
import type { StoredPosition } from '@sluice/storage/clickhouse/known-partitions';
import manifest from '../../package.json' with { type: 'json' };

/** What a backup says of itself. */
export interface Manifest {
  readonly id: string;
  /** As `2026-11-24 19:00:00.000000`, in UTC. */
  readonly startedAt: string;
  readonly sluiceVersion: string;
  readonly migration: number;
  /** Empty when no writer has stored into the database yet. */
  readonly groupId: string;
  readonly topics: readonly { readonly topic: string; readonly partitions: number }[];
  /** How far each partition was stored before anything was copied. */
  readonly positions: readonly StoredPosition[];
}

// The time is above those of all other backups, also after ClickHouse's clock was set back: the newest one counts.
const RECORD = `
INSERT INTO backups (id, started_at, destination, sluice_version, migration, group_id, topics, positions)
SELECT
  {id:UUID}, greatest(now64(6), max(started_at) + toIntervalMicrosecond(1)), {destination:String}, {version:String},
  (SELECT max(number) FROM schema_migrations),
  (SELECT any(group_id) FROM writer_groups),
  (SELECT groupArray((topic, partitions)) FROM topic_partitions FINAL),
  (
    SELECT groupArray((topic, partition, next_offset, fingerprint, leader_epoch))
    FROM writer_positions FINAL
    WHERE group_id IN (SELECT group_id FROM writer_groups)
  )
FROM backups`;

const FINISH = `
INSERT INTO backups
SELECT * REPLACE (
  now64(6) AS finished_at, {bytes:UInt64} AS bytes, greatest(now64(6), state_at + toIntervalMicrosecond(1)) AS state_at
)
FROM backups FINAL WHERE id = {id:UUID}`;

const NEWEST = `
SELECT
  id, toString(started_at) AS startedAt, sluice_version AS sluiceVersion, migration, group_id AS groupId, topics,
  arrayMap(
    position -> (position.topic, position.partition, toString(position.next_offset), position.fingerprint,
      position.leader_epoch),
    positions
  ) AS places
FROM backups FINAL ORDER BY started_at DESC LIMIT 1`;

const RECORD_POSITIONS = `
INSERT INTO writer_positions (
  group_id, topic, partition, next_offset, fingerprint, leader_epoch, incarnation, generation
)
SELECT
  {group:String}, position.topic, position.partition, position.next_offset, position.fingerprint, position.leader_epoch, 0, 0
FROM (SELECT arrayJoin(positions) AS position FROM backups FINAL WHERE id = {id:UUID})`;

/**
 * Records that a backup begins, and how far every partition is stored at this moment.
 *
 * @throws ClickHouse's errors
 */
export async function recordBackup(client: ClickHouseClient, id: string, destination: string): Promise<void> {
  await client.command({ query: RECORD, query_params: { id, destination, version: manifest.version } });
}

/** Records that a backup is complete. @throws ClickHouse's errors */
export async function finishBackup(client: ClickHouseClient, id: string, bytes: number): Promise<void> {
  await client.command({ query: FINISH, query_params: { id, bytes } });
}

/**
 * Reads the newest backup that a database has recorded: in a restored database, the one that it was restored from.
 *
 * @throws ClickHouse's errors
 */
export async function readNewestBackup(client: ClickHouseClient): Promise<Manifest | undefined> {
  const result = await client.query({ query: NEWEST, format: 'JSONEachRow' });
  type Place = readonly [
    topic: string,
    partition: number,
    nextOffset: string,
    fingerprint: string,
    leaderEpoch: number,
  ];
  const [row] = await result.json<Omit<Manifest, 'positions'> & { places: readonly Place[] }>();
  if (!row) return undefined;
  const { places, ...found } = row;
  const positions = places.map(([topic, partition, nextOffset, fingerprint, leaderEpoch]) => ({
    ...{ topic, partition, nextOffset: BigInt(nextOffset) },
    last: fingerprint === '' ? undefined : { fingerprint, leaderEpoch },
  }));
  return { ...found, positions };
}

/** Makes the positions of a restored database those of its manifest, in a group. @throws ClickHouse's errors */
export async function resetPositions(client: ClickHouseClient, id: string, group: string): Promise<void> {
  await client.command({ query: 'TRUNCATE TABLE writer_positions' });
  await client.command({ query: RECORD_POSITIONS, query_params: { id, group } });
}
