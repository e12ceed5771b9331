import { createDatabase } from '@sluice/shared/clickhouse/testing/test-database';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { PagePaces } from '../../events/page-paces.ts';
import { createMeasuredRunner, type MeasuredRunner, type ReadCost } from '../../testing/measured-runner.ts';
import { type QueryService, startQuery } from '../../testing/query-service.ts';
import { readEventNames, readNameValues } from './event-names.ts';
import { createSampleReader, SAMPLE_EVENTS_MAX } from './event-sample.ts';

// What menus read of more events, as ClickHouse counts it.

const DAY_MS = 86_400_000;
const SMALL_ROWS = 15_000;

let query: QueryService;
let runner: MeasuredRunner;
let endMs: number;

/** The workspace `a` has events of one month until now; `b` has four times as many of each month of 24. */
beforeAll(async () => {
  query = await startQuery(inject('clickhouseUrl'), {}, undefined, createDatabase);
  runner = createMeasuredRunner(query.clickHouse, query.config);
  endMs = Date.now();
  await query.clickHouse.command({ query: 'SYSTEM STOP MERGES events' });
  await fill('a', SMALL_ROWS, 1);
  await fill('b', 4 * SMALL_ROWS, 1);
  await fill('b', 23 * SMALL_ROWS, 24);
});
afterAll(() => query.stop());

async function fill(workspace: string, rows: number, months: number): Promise<void> {
  await query.clickHouse.command({
    query: `INSERT INTO events (workspace_id, timestamp, uuid, event, user_id, properties, received_at)
      SELECT {workspace:String},
        fromUnixTimestamp64Milli({end:Int64} - toInt64(cityHash64(number) % {span:UInt64})) AS time,
        generateUUIDv4(number), if(number % 2 = 0, 'opened', 'closed'), toString(number % 1000), '{"plan":"pro"}', time
      FROM numbers({rows:UInt64})`,
    query_params: { workspace, rows, end: endMs, span: months * 30 * DAY_MS },
    clickhouse_settings: { max_partitions_per_insert_block: '0' },
  });
}

const ALL = { fields: [], properties: [], startMs: undefined, endMs: undefined };

test('names, and values of a field with few of them, read a row for each day and hour and not for each event', async () => {
  const month = { ...ALL, startMs: Math.floor((endMs - 29 * DAY_MS) / 3_600_000) * 3_600_000 };
  const asked = { selection: month, prefix: '', limit: 100 };
  const costs: ReadCost[] = [];
  for (const workspace of ['a', 'b']) {
    costs.push(await runner.measure(() => readEventNames(runner, asked, { workspace })));
    await runner.measure(() => readNameValues(runner, 'event', asked, { workspace }));
  }
  const [small, large] = costs as [ReadCost, ReadCost];
  // Most days and hours are in two parts, and the events of the hours at both ends are read.
  expect(large.rows).toBeLessThanOrEqual(4 * small.rows);
  expect(small.rows).toBeLessThan(SMALL_ROWS / 5);
  expect(small.queries).toBe(1);
});

test('a sample reads no more of 24 months than of one', async () => {
  const readSample = createSampleReader(runner, new PagePaces(), 60_000);
  const costs: ReadCost[] = [];
  for (const workspace of ['a', 'b']) {
    const request = { selection: ALL, field: 'properties', visit: () => false } as const;
    // The first sample shows how the events lie in time.
    for (const _ of [1, 2]) {
      const cost = await runner.measure(async () => {
        expect(await readSample(request, { workspace })).toBe(SAMPLE_EVENTS_MAX);
      });
      costs.push(cost);
    }
  }
  // `b` has 405,000 events. How far ClickHouse reads ahead differs from run to run.
  for (const { rows } of costs) expect(rows).toBeLessThanOrEqual(8 * SAMPLE_EVENTS_MAX);
});

test('a sample of a rare value reads what the index finds', async () => {
  const readSample = createSampleReader(runner, new PagePaces(), 60_000);
  const fields = [{ field: 'userId', condition: { operator: 'eq', value: '7' } }] as const;
  const request = { selection: { ...ALL, fields }, field: 'event', visit: () => false } as const;
  const cost = await runner.measure(() => readSample(request, { workspace: 'a' }));
  expect(cost.rows).toBeLessThan(SMALL_ROWS / 3);
});
