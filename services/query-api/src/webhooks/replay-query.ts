import type { Sql } from '../store/sql.ts';
import type { Tables } from '../store/tables.ts';
import { encodePosition, type StreamId, type StreamPosition } from '../stream/stream-position.ts';

/** A key before that of every event of a block. */
const BEFORE_BLOCK = { timestampMs: Date.UTC(1899, 11, 31), uuid: '00000000-0000-0000-0000-000000000000' } as const;

/** Returns the query for the first block on each server with an event of the workspace that was received since a time. */
export function firstBlocksQuery(tables: Tables, sinceMs: number): Sql {
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
export function positionBefore(blocks: ReadonlyMap<number, number>, now: StreamId): string {
  const position: StreamPosition = new Map(
    [...now.position].map(([shard, place]) => {
      const block = blocks.get(shard);
      return [shard, block === undefined ? place : { block, ...BEFORE_BLOCK }];
    }),
  );
  // What was sent up to there is not known, so that another server could not go on.
  return encodePosition(position, now.sentAtMs, now.origin && { ...now.origin, throughMs: 0 });
}
