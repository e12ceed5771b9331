import type { ClickHouseClient } from '@sluice/shared/clickhouse/client';

/** A mutation of a table that ClickHouse carries out in the background, part by part. */
export interface BackgroundWork {
  readonly table: string;
  /** What it does, such as `MATERIALIZE PROJECTION by_hour`. */
  readonly command: string;
  readonly partsToDo: number;
  /** Seconds since it began. */
  readonly seconds: number;
  /** How much of the parts that are rewritten now is done, from 0 to 1. */
  readonly progress: number;
  /** The newest error; empty while it does not fail. ClickHouse repeats it until it succeeds. */
  readonly failure: string;
}

/** Returns what ClickHouse does in the background for the tables of the database, the oldest first. */
export async function readBackgroundWork(client: ClickHouseClient): Promise<readonly BackgroundWork[]> {
  const result = await client.query({
    query: `SELECT
      m.table AS table,
      m.command AS command,
      toUInt32(m.parts_to_do) AS partsToDo,
      toUInt32(now() - m.create_time) AS seconds,
      g.progress AS progress,
      m.latest_fail_reason AS failure
    FROM system.mutations AS m
    LEFT JOIN (
      SELECT table, avg(progress) AS progress FROM system.merges
      WHERE database = currentDatabase() AND is_mutation GROUP BY table
    ) AS g ON g.table = m.table
    WHERE m.database = currentDatabase() AND NOT m.is_done
    ORDER BY m.create_time, m.table, m.command`,
    format: 'JSONEachRow',
  });
  return await result.json<BackgroundWork>();
}
