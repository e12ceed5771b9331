import { Problem } from '@sluice/shared/http/problem';
import type { Row, Sql, Tables } from '../store/store.ts';
import { isEndOfBlock, type StoredAt } from './stream-position.ts';

/** What a writer has recorded of a server. */
export interface ProgressOfServer extends StoringProgress {
  /** The number of the server, as in a position. */
  readonly shard: number;
}

/** Progress, and when it was recorded by the clock of the server, in milliseconds since 1970. */
export interface RecordedProgress extends ProgressOfServer {
  readonly recordedMs: number;
}

/**
 * Returns a column with what was recorded last of each server, if anything was lately. It may have a newer block than the rest
 * of its statement, which holds all the same.
 */
export function newestProgress(tables: Tables): string {
  return `(
    SELECT groupArray((shard, block, toUnixTimestamp64Milli(newest_through)))
    FROM (
      SELECT shard, argMax(newest_block, recorded_at) AS block, argMax(through, recorded_at) AS newest_through
      FROM ${tables.storingProgress}
      WHERE recorded_at > now64(3) - toIntervalMinute(10)
      GROUP BY shard
    )
  )`;
}

/** Reads a {@link newestProgress}. */
export function asNewestProgress(column: unknown): readonly ProgressOfServer[] {
  const servers = column as readonly [shard: number, block: number, throughMs: number][];
  return servers.map(([shard, block, throughMs]) => ({ shard, block, throughMs }));
}

/**
 * Returns the query for until when everything is stored up to a block of each server: no row when that is not known of all.
 *
 * @param blocks by the number of the server
 */
export function throughQuery(tables: Tables, blocks: ReadonlyMap<number, number>): Sql {
  return {
    sql: `SELECT toUnixTimestamp64Milli(min(server_through))
FROM (
  SELECT max(through) AS server_through
  FROM ${tables.storingProgress}
  WHERE newest_block <= {blocks:Array(UInt64)}[indexOf({shards:Array(UInt32)}, shard)]
  GROUP BY shard
)
HAVING count() = length({shards:Array(UInt32)})`,
    params: { shards: [...blocks.keys()], blocks: [...blocks.values()] },
  };
}

/**
 * Returns the query for what was recorded last of each server before each of some times.
 *
 * @param times in ascending order; there is no row for one before which nothing was recorded after the time before it
 */
export function recordedBeforeQuery(tables: Tables, times: readonly number[]): Sql {
  return {
    sql: `
SELECT
  shard,
  max(recorded_ms),
  argMax(newest_block, (recorded_ms, newest_block)) AS block,
  argMax(through_ms, (recorded_ms, newest_block)) AS through
FROM (
  SELECT
    shard,
    newest_block,
    toUnixTimestamp64Milli(recorded_at) AS recorded_ms,
    toUnixTimestamp64Milli(through) AS through_ms
  FROM ${tables.storingProgress}
  WHERE recorded_at <= fromUnixTimestamp64Milli({latest:Int64}, 'UTC')
)
GROUP BY shard, arrayFirstIndex(time -> recorded_ms <= time, {times:Array(Int64)})
ORDER BY max(recorded_ms)`,
    params: { times, latest: times.at(-1) ?? 0 },
  };
}

/** Reads a row of {@link recordedBeforeQuery}. */
export function asRecordedProgress(row: Row): RecordedProgress {
  const [shard, recordedMs, block, throughMs] = row as [number, number, number, number];
  return { shard, recordedMs, block, throughMs };
}

/** What a writer has recorded: everything that Kafka had appended before a time is in blocks up to a number. */
interface StoringProgress {
  readonly block: number;
  /** In milliseconds since 1970. */
  readonly throughMs: number;
}

/** In seconds. */
const RETRY_AFTER = 2;

/** Returns why nothing can be said of a replica yet that has just started. */
export function notReached(): Problem {
  const detail =
    'It is not known yet up to where the replica has everything: a writer says it, once the replica has every row that others have; try again.';
  return new Problem('store_unavailable', detail, { retryAfter: RETRY_AFTER });
}

/** How many rows are kept: those of half an hour. */
const ROWS_MAX = 1_000;

/** The newest of what the writers of a server have recorded, for the ids of its streams. */
export class StoredThrough {
  /** Both numbers grow from row to row. */
  readonly #rows: StoringProgress[] = [];

  add(row: StoringProgress): void {
    // A row says no more than one that has a later time for the same block, or a lower one.
    while (this.#newest && this.#newest.block >= row.block && this.#newest.throughMs <= row.throughMs) this.#rows.pop();
    if (this.#newest && this.#newest.throughMs >= row.throughMs) return;
    this.#rows.push(row);
    if (this.#rows.length > ROWS_MAX) this.#rows.shift();
  }

  /**
   * Returns a time in milliseconds since 1970 such that everything that Kafka had appended before is stored up to a place; 0 when
   * none is known. It may be earlier than it could be, never later.
   */
  at(place: StoredAt): number {
    const block = lastWholeBlock(place);
    return this.#rows.findLast((row) => row.block <= block)?.throughMs ?? 0;
  }

  get #newest(): StoringProgress | undefined {
    return this.#rows.at(-1);
  }
}

/** Returns the last block of which nothing comes after a place. */
export function lastWholeBlock(place: StoredAt): number {
  return isEndOfBlock(place) ? place.block : place.block - 1;
}
