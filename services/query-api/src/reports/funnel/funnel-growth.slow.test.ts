import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import type { Statement } from '../../store/query.ts';
import type { Tables } from '../../store/tables.ts';
import { MeasuredRunner, type ReadCost } from '../../testing/measured-runner.ts';
import { type QueryService, startQuery } from '../../testing/query-service.ts';
import { parseRetentionPeopleRequest, parseRetentionRequest } from '../retention/retention-parameters.ts';
import { retentionPeopleQuery, retentionQuery } from '../retention/retention-query.ts';
import { parseFunnelPeopleRequest, parseFunnelRequest } from './funnel-parameters.ts';
import { funnelPeopleQuery, funnelQuery } from './funnel-query.ts';

let query: QueryService;
let runner: MeasuredRunner;

const END_MS = Date.UTC(2026, 9, 31);
const MONTH_MS = 30 * 86_400_000;
const LAST_MONTH = `startDate=${new Date(END_MS - MONTH_MS).toISOString()}&endDate=${new Date(END_MS).toISOString()}`;
const ALL_MONTHS = LAST_MONTH.replace(/startDate=[^&]+/, 'startDate=2000-01-01');
const MONTH_ROWS = 20_000;
const GRANULE_ROWS = 128;

/** The workspace `a` has events of one month, `b` of twelve, as many each month. One of a thousand events is `rare`. */
beforeAll(async () => {
  query = await startQuery(inject('clickhouseUrl'));
  runner = new MeasuredRunner(query.clickHouse, query.config);
  await fill('a', 1);
  await fill('b', 12);
});
afterAll(() => query.stop());

async function fill(workspace: string, months: number): Promise<void> {
  await query.clickHouse.command({
    query: `INSERT INTO events (workspace_id, timestamp, uuid, event, user_id, received_at)
      SELECT {workspace:String},
        fromUnixTimestamp64Milli({end:Int64} - toInt64(cityHash64(number) % {span:UInt64})) AS time,
        generateUUIDv4(number), if(number % 1000 = 0, 'rare', if(number % 2 = 0, 'opened', 'closed')),
        toString(number % 700), time
      FROM numbers({rows:UInt64})`,
    query_params: { workspace, rows: months * MONTH_ROWS, end: END_MS, span: months * MONTH_MS },
    clickhouse_settings: { max_partitions_per_insert_block: '0' },
  });
}

async function costOf(workspace: string, statement: Statement['statement']): Promise<ReadCost> {
  return await runner.measure(() => runner.all({ kind: 'funnel', workspace, statement }));
}

function parameters(text: string): Record<string, string[]> {
  return Object.fromEntries([...new URLSearchParams(text)].map(([name, value]) => [name, [value]]));
}

const funnel = (text: string) => (tables: Tables) =>
  funnelQuery(tables, parseFunnelRequest(parameters(text)), undefined);
const retention = (text: string) => (tables: Tables) =>
  retentionQuery(tables, parseRetentionRequest(parameters(text)), undefined);
const funnelPeople = (text: string) => (tables: Tables) =>
  funnelPeopleQuery(tables, parseFunnelPeopleRequest(parameters(text), 'b'), undefined);
const retentionPeople = (text: string) => (tables: Tables) =>
  retentionPeopleQuery(tables, parseRetentionPeopleRequest(parameters(text), 'b'), undefined);

test.each([
  ['a funnel', funnel(`steps=opened,closed&${LAST_MONTH}`)],
  ['retention', retention(`event=opened&returnEvent=closed&${LAST_MONTH}`)],
])('%s of a month reads no more of a year than of a month, and each event once', async (_, sql) => {
  const [small, large] = [await costOf('a', sql), await costOf('b', sql)];
  expect(small.rows).toBeGreaterThan(MONTH_ROWS * 0.9);
  expect(small.rows).toBeLessThan(MONTH_ROWS * 1.1);
  expect(large.rows).toBeLessThan(small.rows * 1.2);
});

test.each([
  ['a funnel', funnel(`steps=rare,rare&${ALL_MONTHS}`)],
  ['retention', retention(`event=rare&interval=month&${ALL_MONTHS}`)],
])('%s reads the events of its names alone, a granule each', async (_, sql) => {
  const { rows } = await costOf('b', sql);
  expect(rows).toBeGreaterThan(0);
  expect(rows).toBeLessThanOrEqual(((12 * MONTH_ROWS) / 1_000) * GRANULE_ROWS);
});

const OPENED = `steps=opened,closed&${LAST_MONTH}`;
const RETURNED = `event=opened&returnEvent=closed&${LAST_MONTH}`;
const COHORT = `cohort=${new Date(END_MS - MONTH_MS / 2).toISOString()}`;

test.each([
  ['a step of a funnel', funnel(OPENED), funnelPeople(`${OPENED}&step=2`)],
  ['a step that they dropped out before', funnel(OPENED), funnelPeople(`${OPENED}&step=2&dropped=true`)],
  ['a cohort', retention(RETURNED), retentionPeople(`${RETURNED}&${COHORT}`)],
  ['a return', retention(RETURNED), retentionPeople(`${RETURNED}&${COHORT}&period=3`)],
])('the people of %s are read with no more events than the report', async (_, report, people) => {
  const [counted, listed] = [await costOf('b', report), await costOf('b', people)];
  expect(listed.rows).toBeGreaterThan(0);
  expect(listed.rows).toBeLessThanOrEqual(counted.rows);
  expect(listed.granules).toBeLessThanOrEqual(counted.granules);
});
