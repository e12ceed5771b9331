import { createDatabase } from '@sluice/shared/clickhouse/testing/test-database';
import { eventually } from '@sluice/shared/testing/eventually';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { type QueryService, startQuery } from '../../testing/query-service.ts';

let query: QueryService;

/** Events of twelve months, in three parts each. */
beforeAll(async () => {
  query = await startQuery(inject('clickhouseUrl'), {}, undefined, createDatabase);
  await query.clickHouse.command({ query: 'SYSTEM STOP MERGES events' });
  for (let part = 0; part < 3; part += 1) {
    await query.clickHouse.command({
      query: `INSERT INTO events (workspace_id, timestamp, uuid, event, received_at)
        SELECT 'b', toDateTime64('2025-01-01', 3, 'UTC') + toIntervalMonth(number % 12) AS time, generateUUIDv4(), 'e', time
        FROM numbers(1200)`,
      clickhouse_settings: { max_partitions_per_insert_block: '0' },
    });
  }
});
afterAll(() => query.stop());

/** How many parts and partitions hold the events. */
async function partsOfEvents(): Promise<{ readonly parts: number; readonly partitions: number }> {
  const result = await query.clickHouse.query({
    query: `SELECT uniqExact(_part) AS parts, uniqExact(_partition_id) AS partitions
      FROM events WHERE workspace_id = 'b'`,
    format: 'JSONEachRow',
  });
  const [{ parts, partitions } = { parts: 0, partitions: 0 }] =
    await result.json<Record<'parts' | 'partitions', number>>();
  return { parts: Number(parts), partitions: Number(partitions) };
}

test('months that get no events any more become one part each', async () => {
  const { parts, partitions } = await partsOfEvents();
  expect(parts).toBeGreaterThan(2 * partitions);
  const result = await query.clickHouse.query({ query: 'SHOW CREATE TABLE events', format: 'TabSeparatedRaw' });
  expect(await result.text()).toContain(`min_age_to_force_merge_seconds = ${35 * 86_400}`);
  // Only the time is shortened.
  await query.clickHouse.command({ query: 'ALTER TABLE events MODIFY SETTING min_age_to_force_merge_seconds = 1' });
  await query.clickHouse.command({ query: 'SYSTEM START MERGES events' });
  await eventually(partsOfEvents, { interval: 500 }).toEqual({ parts: partitions, partitions });
});
