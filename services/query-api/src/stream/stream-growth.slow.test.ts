import { mergeParts } from '@sluice/shared/clickhouse/testing/merge-parts';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import type { Row } from '../store/clickhouse-reader.ts';
import type { Statement } from '../store/query.ts';
import { MeasuredRunner, type ReadCost } from '../testing/measured-runner.ts';
import { anEvent, type QueryService, startQuery } from '../testing/query-service.ts';
import type { StreamPosition } from './stream-position.ts';
import { newestPosition, newestQuery, pageQuery } from './stream-query.ts';

const MONTHS = 24;
const SELECTION = { workspace: 'a', fields: [], properties: [] };

let query: QueryService;
let runner: MeasuredRunner;

beforeAll(async () => {
  query = await startQuery(inject('clickhouseUrl'));
  runner = new MeasuredRunner(query.clickHouse, query.config);
});
afterAll(() => query.stop());

async function fill(rows: number): Promise<void> {
  await query.clickHouse.command({
    query: `INSERT INTO events (workspace_id, timestamp, uuid, event, received_at)
      SELECT 'a', toDateTime64('2026-03-01', 3, 'UTC') - toIntervalMinute(number * {months:UInt32} * 43200 / {rows:UInt32}) AS time,
        generateUUIDv4(number), 'e', time
      FROM numbers({rows:UInt32})`,
    query_params: { rows, months: MONTHS },
    clickhouse_settings: { max_partitions_per_insert_block: '0' },
  });
  await mergeParts(query.clickHouse, 'events');
}

async function measured(statement: Statement['statement']): Promise<{ cost: ReadCost; rows: readonly Row[] }> {
  let rows: readonly Row[] = [];
  const cost = await runner.measure(async () => {
    rows = await runner.all({ statement, kind: 'stream_events', workspace: '' });
  });
  return { cost, rows };
}

const newest = async () => newestPosition((await measured(newestQuery)).rows);

const page = (from: StreamPosition, to: StreamPosition) =>
  measured((tables) => pageQuery(tables, [SELECTION], new Map(), { from, to, limit: 100 }));

/** Stores an event of now and one of two years ago, and returns what it costs to find them. */
async function costOfNewEvents(): Promise<{ looking: number; reading: ReadCost }> {
  const before = await newest();
  await query.store('a', [anEvent(), anEvent({ timestampMs: Date.UTC(2024, 5, 1) })]);
  const { cost } = await measured(newestQuery);
  const { cost: reading, rows } = await page(before, await newest());
  expect(rows).toHaveLength(2);
  return { looking: cost.rows, reading };
}

test('new events are found without reading old ones, of whatever month: the cost does not grow with what is stored', async () => {
  await fill(10_000);
  const small = await costOfNewEvents();
  await fill(160_000);
  const large = await costOfNewEvents();
  expect(small.reading.rows).toBe(2);
  expect(large.reading).toEqual(small.reading);
  // It reads the names of the parts.
  expect(large.looking).toBeLessThanOrEqual(MONTHS + 10);
});

test('a look that finds nothing new reads no row', async () => {
  const position = await newest();
  const { cost, rows } = await page(position, position);
  expect([cost.rows, cost.granules, rows.length]).toEqual([0, 0, 0]);
});
