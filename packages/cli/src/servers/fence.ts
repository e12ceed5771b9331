import type { ClickHouseClient } from '@sluice/shared/clickhouse/client';

// Generation 0 is before every generation that writers join, so the next one goes on in this incarnation.
const RECORD_FENCE = `
INSERT INTO writer_epochs (group_id, incarnation, generation, leader_id)
SELECT {group:String}, greatest(toUnixTimestamp(now()), toUInt32(max(incarnation) + 1)), 0, ''
FROM writer_epochs WHERE group_id = {group:String}`;

/**
 * Records an epoch above all of the group's, also above those that were lost with a disk: its incarnation is the time in
 * seconds, and writers count theirs from 1. A writer that froze before stores nothing when it wakes up.
 *
 * @throws ClickHouse's errors
 */
export async function recordFence(client: ClickHouseClient, group: string): Promise<void> {
  await client.command({ query: RECORD_FENCE, query_params: { group } });
}
