import { createDatabase } from '@sluice/shared/clickhouse/testing/test-database';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { MeasuredRunner, type ReadCost } from '../../testing/measured-runner.ts';
import { type QueryService, startQuery } from '../../testing/query-service.ts';
import { parseSeriesRequest } from '../series/series-parameters.ts';
import { SeriesReader } from '../series/series-reader.ts';
import { OverviewReader, SAMPLED_OF_DAY } from './overview-reader.ts';

// What an overview reads of more events, as ClickHouse counts it.

const DAY_MS = 86_400_000;
const NOW_MS = Date.UTC(2026, 9, 31, 7);
const DAYS = 29;
const DAY_ROWS = 2_100;
/** Parts end within a granule of 128 rows, and so do the times that are looked at. */
const GRANULES = 1.3;

let query: QueryService;
let runner: MeasuredRunner;

/** The workspace `a` has events of 30 days, `b` twice as many, and `c` as many of each day of 60. */
beforeAll(async () => {
  query = await startQuery(inject('clickhouseUrl'), {}, undefined, createDatabase);
  runner = new MeasuredRunner(query.clickHouse, query.config);
  await fill('a', DAY_ROWS, 30);
  await fill('b', 2 * DAY_ROWS, 30);
  await fill('c', DAY_ROWS, 60);
  await query.clickHouse.command({ query: 'OPTIMIZE TABLE events FINAL' });
});
afterAll(() => query.stop());

async function fill(workspace: string, dayRows: number, days: number): Promise<void> {
  await query.clickHouse.command({
    query: `INSERT INTO events (workspace_id, timestamp, uuid, event, user_id, group_id, properties, received_at)
      SELECT {workspace:String}, fromUnixTimestamp64Milli({end:Int64} - 1 - toInt64(cityHash64(number) % {span:UInt64})) AS time,
        generateUUIDv4(number), concat('e', toString(number % 40)), toString(number % 500), toString(number % 30), '{"plan":"pro"}', time
      FROM numbers({rows:UInt64})`,
    query_params: { workspace, rows: dayRows * days, end: Date.UTC(2026, 9, 31), span: days * DAY_MS },
    clickhouse_settings: { max_partitions_per_insert_block: '0', max_insert_block_size: '1000000' },
  });
}

async function costOfOverview(workspace: string): Promise<ReadCost> {
  return await runner.measure(async () => {
    const { weeks, complete, topEvents } = await new OverviewReader(runner, query.config).read('UTC', NOW_MS, {
      workspace,
    });
    expect([weeks, complete, topEvents.length]).toEqual([4, true, 10]);
  });
}

/** What the reports read that draw its figures of people. */
async function costOfPeople(workspace: string): Promise<number> {
  const costOf = async (measure: string, days: number) => {
    const parameters = {
      measure,
      startDate: new Date(Date.UTC(2026, 9, 31) - days * DAY_MS).toISOString(),
      endDate: new Date(NOW_MS).toISOString(),
    };
    const request = parseSeriesRequest(
      Object.fromEntries(Object.entries(parameters).map(([name, value]) => [name, [value]])),
    );
    return await runner.measure(() => new SeriesReader(runner, query.config).read(request, { workspace }));
  };
  const costs = [await costOf('users', DAYS), await costOf('organizations', DAYS), await costOf('users', DAYS - 1)];
  return costs.reduce((rows, cost) => rows + cost.rows, 0);
}

test('events are counted by hour, few are looked at for their properties, and people cost what their reports do', async () => {
  const rest: Record<string, number> = {};
  for (const workspace of ['a', 'b', 'c']) {
    const { rows } = await costOfOverview(workspace);
    rest[workspace] = rows - (await costOfPeople(workspace));
  }
  const sampled = DAYS * SAMPLED_OF_DAY;
  for (const rows of Object.values(rest)) expect(rows).toBeLessThan(3 * sampled);
  expect(rest['b']).toBeLessThanOrEqual(GRANULES * (rest['a'] as number));
  expect(rest['c']).toBeLessThanOrEqual(GRANULES * (rest['a'] as number));
});
