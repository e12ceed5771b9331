import type { RowBatch } from '@sluice/storage/protocol/row-batch';
import { WORKSPACE } from '../data/filter-queries.ts';
import { storeTraffic } from '../data/store-traffic.ts';
import { createTraffic, LONG_DAYS, WORKSPACES } from '../data/traffic.ts';
import { queryByHand } from '../measure/direct-queries.ts';
import type { BenchDatabase } from '../processes/database.ts';
import { BenchEngine } from '../processes/engine.ts';
import { QueryApi } from '../processes/query-api.ts';
import { type Bar, type Benchmark, type Figure, figureOf, quotients, VoidRun } from '../report/benchmark.ts';

/** By column, as query-api chooses them: names with few values, a number with 500, and behind them one with a million. */
const DECLARED = ['plan', 'source', 'seats', '', '', '', '', '', 'amount'];

const BATCH_ROWS = 5_000;

/** A batch takes a tenth of a second, and what it costs varies more than a report. */
const INSERTS_OF_ROUND = 5;

export const DECLARED_PROPERTIES: Benchmark<{ rounds: number; events: number }> = {
  name: 'declared',
  title: 'Fast properties',
  method:
    'Product traffic of 36 months in three databases, each month one part: one where every workspace has declared four properties before, and two ' +
    'where none has. Seven in ten events belong to the workspace that is queried. Each report is measured over everything, in turn by the columns, by the ' +
    'text, and with SQL that was written by hand for a table with the same rows and typed columns. Then batches of 5,000 events are stored ' +
    "in turn, by the writer's own code; merges are held off meanwhile.",
  size: { rounds: 7, events: 3_000_000 },
  measure,
};

interface Report {
  readonly name: string;
  readonly parameters: Readonly<Record<string, string>>;
  /** The same of the table `typed`. */
  readonly byHand: string;
  readonly bars: { readonly byHand: Bar; readonly text?: Bar };
}

const byMonth = (columns: string, filter = '', group = '') => `
  SELECT toStartOfMonth(timestamp, 'UTC') AS month, ${columns}
  FROM typed
  WHERE workspace_id = {workspace:String} AND timestamp <= fromUnixTimestamp64Milli({end:Int64})${filter}
  GROUP BY month${group} ORDER BY month${group}`;

const REPORTS: readonly Report[] = [
  {
    name: 'count by month and a property',
    parameters: { groupBy: 'properties.plan' },
    byHand: byMonth('plan, count()', '', ', plan'),
    bars: { byHand: { atMost: 1.5 }, text: { atMost: 0.2 } },
  },
  {
    name: 'count by month, one value of a property',
    parameters: { 'properties.source': 'newsletter' },
    byHand: byMonth('count()', " AND source = 'newsletter'"),
    bars: { byHand: { atMost: 1.5 } },
  },
  {
    name: 'sum of a number by month',
    parameters: { measure: 'sum:properties.amount' },
    byHand: byMonth('sumKahan(amount)'),
    bars: { byHand: { atMost: 2 } },
  },
  {
    name: 'p95 of a number by month',
    parameters: { measure: 'p95:properties.amount' },
    byHand: byMonth('quantileExactInclusive(0.95)(amount)'),
    bars: { byHand: { atMost: 2 } },
  },
];

async function measure({ rounds, events }: { rounds: number; events: number }): Promise<readonly Figure[]> {
  await using engine = await BenchEngine.start(12 * 1_024 ** 3);
  const names = ['declared', 'text', 'again'] as const;
  const [declared, text, again] = await Promise.all(names.map((name) => engine.createDatabase(name)));
  if (!declared || !text || !again) throw new Error('there are three databases');
  const endMs = Date.now() - 60_000;
  await declared.client.insert({
    table: 'console_fast_properties',
    values: WORKSPACES.map((workspace_id) => ({ workspace_id, names: DECLARED })),
    format: 'JSONEachRow',
  });
  for (const database of [declared, text]) {
    await storeTraffic(database, createTraffic(events, endMs, LONG_DAYS), events);
    await database.mergeMonths();
  }
  await createTyped(declared);
  await engine.settleMerges();

  await using byColumns = await QueryApi.start(engine.url, 'declared', WORKSPACE);
  await using byText = await QueryApi.start(engine.url, 'text', WORKSPACE);
  const figures: Figure[] = [];
  for (const report of REPORTS)
    figures.push(...(await measureReport(report, byColumns, byText, declared, rounds, endMs)));
  figures.push(...(await measureInserts(engine, { declared, text, again }, rounds)));
  figures.push(...(await bytesOf(declared, text)));
  return figures;
}

/** The same rows with typed columns, as somebody would make them who knows what is asked for. */
async function createTyped(database: BenchDatabase): Promise<void> {
  const { client } = database;
  await client.command({ query: 'CREATE TABLE typed AS events' });
  await client.command({
    query: `ALTER TABLE typed ADD COLUMN plan LowCardinality(String), ADD COLUMN source LowCardinality(String),
      ADD COLUMN amount Float64`,
  });
  await client.command({
    query: `INSERT INTO typed SELECT *, JSONExtractString(properties, 'plan'), JSONExtractString(properties, 'source'),
      JSONExtractFloat(properties, 'amount') FROM events SETTINGS max_partitions_per_insert_block = 0`,
  });
  for (const id of await database.partitions('typed')) {
    await client.command({ query: 'OPTIMIZE TABLE typed PARTITION ID {id:String} FINAL', query_params: { id } });
  }
}

/** @throws {VoidRun} when the columns and the text answer differently, or not at all */
async function measureReport(
  { name, parameters, byHand, bars }: Report,
  byColumns: QueryApi,
  byText: QueryApi,
  { client }: BenchDatabase,
  rounds: number,
  endMs: number,
): Promise<Figure[]> {
  const startDate = new Date(endMs - LONG_DAYS * 86_400_000).toISOString();
  const request = { startDate, endDate: new Date(endMs).toISOString(), interval: 'month', ...parameters };
  const times = { columns: [] as number[], text: [] as number[], hand: [] as number[] };
  for (let round = -1; round < rounds; round += 1) {
    const columns = await byColumns.get('/events/series', request);
    const text = await byText.get('/events/series', request);
    const handMs = await queryByHand(client, byHand, { end: endMs });
    if (columns.status !== 200 || !isSame(columns.body, text.body)) {
      throw new VoidRun(`${name} got ${columns.status}, and another answer by columns than by text`);
    }
    // Round -1 warms up.
    if (round < 0) continue;
    times.columns.push(columns.ms);
    times.text.push(text.ms);
    times.hand.push(handMs);
  }
  return [
    figureOf(name, 'by columns', 'ms', times.columns),
    figureOf(name, 'by text', 'ms', times.text),
    figureOf(name, 'SQL by hand', 'ms', times.hand),
    figureOf(name, 'columns ÷ SQL by hand', '', quotients(times.columns, times.hand), bars.byHand),
    figureOf(name, 'columns ÷ text', '', quotients(times.columns, times.text), bars.text),
  ];
}

/** Whether two reports are the same, up to the last digits of sums, whose order is not promised. */
function isSame(one: unknown, other: unknown): boolean {
  const rounded = (_: string, value: unknown) => (typeof value === 'number' ? Number(value.toPrecision(12)) : value);
  return JSON.stringify(one, rounded) === JSON.stringify(other, rounded);
}

type Databases = Readonly<Record<'declared' | 'text' | 'again', BenchDatabase>>;

async function measureInserts(engine: BenchEngine, databases: Databases, rounds: number): Promise<Figure[]> {
  const batches = INSERTS_OF_ROUND * rounds;
  const traffic = createTraffic((batches + 1) * BATCH_ROWS, Date.now(), 1);
  const costs: Record<keyof Databases, number[]> = { declared: [], text: [], again: [] };
  for (let round = -1; round < batches; round += 1) {
    const batch: RowBatch = traffic.next(BATCH_ROWS);
    await engine.stopMerges();
    for (const [name, database] of Object.entries(databases) as [keyof Databases, BenchDatabase][]) {
      const { cpuUs } = await engine.measure(() => database.store(batch));
      if (round >= 0) costs[name].push(cpuUs / BATCH_ROWS);
    }
    await engine.resumeMerges();
  }
  const [name, unit] = ['storing an event', 'µs of ClickHouse'];
  return [
    figureOf(name, 'four declared', unit, costs.declared),
    figureOf(name, 'none', unit, costs.text),
    figureOf(name, 'four declared ÷ none', '', quotients(costs.declared, costs.text), { atMost: 1.08 }),
    figureOf(name, 'none ÷ none (the noise)', '', quotients(costs.again, costs.text)),
  ];
}

async function bytesOf(...databases: readonly BenchDatabase[]): Promise<Figure[]> {
  const bytes = databases.map(async (database) => {
    const [row] = await database.read<{ bytes: number }>(
      `SELECT sum(bytes_on_disk) / sum(rows) AS bytes FROM system.parts
       WHERE database = currentDatabase() AND table = 'events' AND active`,
    );
    return row?.bytes ?? Number.NaN;
  });
  const [declared = Number.NaN, text = Number.NaN] = await Promise.all(bytes);
  const name = 'an event on the disk';
  return [
    figureOf(name, 'four declared', 'bytes', [declared]),
    figureOf(name, 'none', 'bytes', [text]),
    figureOf(name, 'four declared ÷ none', '', [declared / text]),
  ];
}
