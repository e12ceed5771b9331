import type { ClickHouseClient } from '@sluice/shared/clickhouse/client';
import { STATEMENTS } from '@sluice/storage/clickhouse/statements';

/** `complete`, `filling` (rows are being copied into it) or `incomplete` (messages were given up). */
export type DatabaseState = 'complete' | 'filling' | 'incomplete';

/** What a database says of itself. */
export interface Identity {
  readonly id: string;
  /** The name of its server in the file of servers; empty without one. */
  readonly server: string;
  /** The consumer group of its writers. */
  readonly groupId: string;
  /** `all`, or a range such as `0-23`. */
  readonly partitions: string;
  readonly state: DatabaseState;
  /** Why it is not complete. */
  readonly detail: string;
}

// The new time is above the stored one, also after ClickHouse's clock was set back: the newest row counts.
const RECORD_STATE = `
INSERT INTO database_identity (id, server, group_id, partitions, state, detail, recorded_at)
SELECT
  id, server, group_id, partitions, {state:String}, {detail:String},
  greatest(now64(6), recorded_at + toIntervalMicrosecond(1))
FROM database_identity ORDER BY recorded_at DESC, id LIMIT 1`;

/** Returns what a database says of itself; `undefined` before a writer has recorded it. @throws ClickHouse's errors */
export async function readIdentity(client: ClickHouseClient): Promise<Identity | undefined> {
  const result = await client.query({ query: STATEMENTS['read-identity'].sql, format: 'JSONEachRow' });
  return (await result.json<Identity>())[0];
}

/**
 * Records the state of a database that has an identity.
 *
 * @param query_id of the statement; default: any
 * @throws ClickHouse's errors
 */
export async function recordState(
  client: ClickHouseClient,
  state: DatabaseState,
  detail = '',
  query_id?: string,
): Promise<void> {
  await client.command({ query: RECORD_STATE, query_params: { state, detail }, ...(query_id && { query_id }) });
}

const END_FILLING = `
INSERT INTO database_identity (id, server, group_id, partitions, state, detail, recorded_at)
SELECT
  id, server, group_id, partitions, {state:String}, {detail:String},
  greatest(now64(6), recorded_at + toIntervalMicrosecond(1))
FROM (SELECT * FROM database_identity ORDER BY recorded_at DESC, id LIMIT 1) AS newest
WHERE newest.state = 'filling' AND newest.detail = {run:String}`;

/**
 * Records the state of a database that was filled, unless another run has begun to fill it since.
 *
 * @param run the detail of the state `filling`
 * @throws ClickHouse's errors
 */
export async function endFilling(
  client: ClickHouseClient,
  run: string,
  { state, detail }: Pick<Identity, 'state' | 'detail'>,
): Promise<void> {
  await client.command({ query: END_FILLING, query_params: { state, detail, run } });
}

/** How the detail of a database begins that `sluice restore` fills. */
export const RESTORING = 'sluice restore';

/** Returns the command that fills a database, which is to be run to its end. @param detail of the state `filling` */
export function fillingCommand(detail: string): string {
  return detail.startsWith(RESTORING) ? RESTORING : 'sluice servers copy';
}

// The newest row counts, also after ClickHouse's clock was set back.
const NEW_ID = `
INSERT INTO database_identity (id, server, group_id, partitions, state, detail, recorded_at)
SELECT
  generateUUIDv4(), server, group_id, partitions, state, detail,
  greatest(now64(6), recorded_at + toIntervalMicrosecond(1))
FROM database_identity
ORDER BY recorded_at DESC, id
LIMIT 1`;

/** Gives a database another id: streams do not go on in it by what they have read before. @throws ClickHouse's errors */
export async function renewId(client: ClickHouseClient): Promise<void> {
  await client.command({ query: NEW_ID });
}

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
