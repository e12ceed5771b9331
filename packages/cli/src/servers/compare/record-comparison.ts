import type { ClickHouseClient } from '@sluice/shared/clickhouse/client';

const RECORD = `
INSERT INTO server_comparisons (compared_at, other, through, months, event_count, differing)
SELECT
  now64(3), {other:String}, fromUnixTimestamp64Micro({until:Int64}), {months:UInt32}, {events:UInt64}, {differing:Array(String)}`;

/** What a comparison with another server has found. */
export interface Outcome {
  /** What was received later was left out, in microseconds since 1970. */
  readonly until: number;
  /** Partitions of the table `events`. */
  readonly months: number;
  /** The tables that differ. */
  readonly differing: readonly string[];
  /** How many events of the server were compared. */
  readonly events: number;
}

/** Records at a server what a comparison with another one has found, for its metrics. @throws ClickHouse's errors */
export async function recordComparison(client: ClickHouseClient, other: string, outcome: Outcome): Promise<void> {
  await client.command({ query: RECORD, query_params: { other, ...outcome } });
}
