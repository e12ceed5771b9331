import { createDatabase } from '@sluice/shared/clickhouse/testing/test-database';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { createMeasuredRunner, type MeasuredRunner, type ReadCost } from '../../testing/measured-runner.ts';
import { type QueryService, startQuery } from '../../testing/query-service.ts';
import { parseSeriesRequest } from './series-parameters.ts';
import { SeriesReader } from './series-reader.ts';

// What series read of more events, as ClickHouse counts it.

const DAY_MS = 86_400_000;
const END_MS = Date.UTC(2026, 9, 31);
const MONTH_ROWS = 15_000;
/** The same for parts that end within a granule. */
const GRANULES = 1.2;

let query: QueryService;
let runner: MeasuredRunner;

/** The workspace `a` has events of one month, `b` four times as many of that month, and `c` as many of each of 24 months. */
beforeAll(async () => {
  query = await startQuery(inject('clickhouseUrl'), {}, undefined, createDatabase);
  runner = createMeasuredRunner(query.clickHouse, query.config);
  await query.clickHouse.command({ query: 'SYSTEM STOP MERGES events' });
  await fill('a', MONTH_ROWS, 1);
  await fill('b', 4 * MONTH_ROWS, 1);
  await fill('c', 24 * MONTH_ROWS, 24);
});
afterAll(() => query.stop());

async function fill(workspace: string, rows: number, months: number): Promise<void> {
  await query.clickHouse.command({
    query: `INSERT INTO events (workspace_id, timestamp, uuid, event, user_id, properties, received_at)
      SELECT {workspace:String},
        fromUnixTimestamp64Milli({end:Int64} - 1 - toInt64(cityHash64(number) % {span:UInt64})) AS time,
        generateUUIDv4(number), if(number % 2 = 0, 'opened', 'closed'), toString(number % 1000), '{"plan":"pro"}', time
      FROM numbers({rows:UInt64})`,
    query_params: { workspace, rows, end: END_MS, span: months * 30 * DAY_MS },
    clickhouse_settings: { max_partitions_per_insert_block: '0', max_insert_block_size: '1000000' },
  });
}

async function costOf(workspace: string, parameters: Readonly<Record<string, string>>): Promise<ReadCost> {
  const dates = {
    startDate: new Date(END_MS - 29 * DAY_MS).toISOString(),
    endDate: new Date(END_MS - 1).toISOString(),
  };
  const listed = Object.entries({ ...dates, ...parameters }).map(([name, value]) => [name, [value]]);
  const request = parseSeriesRequest(Object.fromEntries(listed));
  return await runner.measure(async () => {
    const { current } = await new SeriesReader(runner, query.config).read(request, { workspace });
    expect([current.complete, current.groups.length > 0]).toEqual([true, true]);
  });
}

test.each([
  { measure: 'users' },
  { groupBy: 'properties.plan', measure: 'sum:properties.plan' },
  { groupBy: 'userId,event', interval: 'hour', timeZone: 'Asia/Kathmandu' },
])('a series of %o reads the events of its range once, however many others are stored', async (parameters) => {
  const [month, years] = [await costOf('a', parameters), await costOf('c', parameters)];
  expect([month.queries, years.queries]).toEqual([1, 1]);
  expect(month.rows).toBeLessThanOrEqual(GRANULES * MONTH_ROWS);
  expect(years.rows).toBeLessThanOrEqual(GRANULES * MONTH_ROWS);
});

test.each([
  {},
  { interval: 'hour' },
  { groupBy: 'event,type', interval: 'month', timeZone: 'Europe/Berlin' },
  { 'event[in]': 'opened,closed', compare: 'previous', interval: 'none' },
])('a count of %o reads a row for each hour and name, not for each event', async (parameters) => {
  const [few, many] = [await costOf('a', parameters), await costOf('b', parameters)];
  expect(few.rows).toBeLessThanOrEqual(MONTH_ROWS / 5);
  expect(many.rows).toBeLessThanOrEqual(1.5 * few.rows);
});
