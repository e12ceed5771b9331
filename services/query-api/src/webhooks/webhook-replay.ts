import { Problem } from '@sluice/shared/http/problem';
import { RESUMABLE_DAYS, RESUMABLE_MS } from '../http/http.ts';
import {
  asUnavailable,
  CLOCKS_MS,
  type QueryRunner,
  RequestStore,
  type Sql,
  type Stores,
  type Tables,
  unavailable,
} from '../store/store.ts';
import { decodePosition, encodePosition, endOfBlock, type StreamId, type StreamPosition } from '../stream/stream.ts';
import type { Webhook } from './webhook.ts';
import { positionNow, type StreamSource } from './webhook-stream.ts';

export interface ReplayOptions {
  readonly streams: StreamSource;
  readonly queryRunner: Pick<QueryRunner, 'all'>;
  readonly stores: Stores;
}

/**
 * Returns the position before what was received since a time, in milliseconds since 1970.
 *
 * @throws {Problem} also `position_lost` where ClickHouse replicates the events, and the order of those is not known any more
 */
export async function positionSince(
  { streams, queryRunner, stores }: ReplayOptions,
  webhook: Webhook,
  sinceMs: number,
): Promise<string> {
  const now = decodePosition(await asUnavailable(positionNow(streams, webhook)));
  if (!now) throw new Error('a stream begins with a malformed position');
  const store = new RequestStore(stores);
  if ((await store.current()).tables.orderRecords !== undefined) return numberedSince(now, sinceMs);
  const rows = await queryRunner.all({
    ...({ kind: 'webhook_replay', pool: 'reports', workspace: webhook.workspace, store, signal: undefined } as const),
    statement: (tables) => firstBlocksQuery(tables, sinceMs),
  });
  if (now.origin && (await store.current()).name !== now.origin.server) throw unavailable();
  const blocks = new Map(rows.map(([shard, block]) => [shard as number, block as number]));
  return positionBefore(blocks, now);
}

/** The numbers of replicas are times of a writer: an event got one after it was received. @throws {Problem} */
export function numberedSince(now: StreamId, sinceMs: number): string {
  if (Date.now() - sinceMs > RESUMABLE_MS) {
    const detail = `Of replicated tables, events of the last ${RESUMABLE_DAYS} days can be sent again. Read older ones from GET /events.`;
    throw new Problem('position_lost', detail);
  }
  const since = endOfBlock(sinceMs - CLOCKS_MS);
  const position = new Map([...now.position].map(([shard, end]) => [shard, end.block > since.block ? since : end]));
  return encodePosition(position, now.sentAtMs, now.origin);
}

/** A key before that of every event of a block. */
const BEFORE_BLOCK = { timestampMs: Date.UTC(1899, 11, 31), uuid: '00000000-0000-0000-0000-000000000000' } as const;

/** Returns the query for the first block on each server with an event of the workspace that was received since a time. */
function firstBlocksQuery(tables: Tables, sinceMs: number): Sql {
  return {
    sql: `
SELECT shard, min(block)
FROM ${tables.eventsOfAllWorkspaces}
WHERE workspace_id = {workspace:String} AND received_at >= fromUnixTimestamp64Milli({since:Int64}, 'UTC')
GROUP BY shard`,
    params: { since: sinceMs },
  };
}

/**
 * Returns the id of the position before some blocks.
 *
 * @param blocks the first one of each server that has any
 * @param now where the order of storage ends
 */
function positionBefore(blocks: ReadonlyMap<number, number>, now: StreamId): string {
  const position: StreamPosition = new Map(
    [...now.position].map(([shard, place]) => {
      const block = blocks.get(shard);
      return [shard, block === undefined ? place : { block, ...BEFORE_BLOCK }];
    }),
  );
  // What was sent up to there is not known, so that another server could not go on.
  return encodePosition(position, now.sentAtMs, now.origin && { ...now.origin, throughMs: 0 });
}
