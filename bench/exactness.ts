import type { RowBatch } from '../services/writer/src/protocol/row-batch.ts';
import { type Cost, startBenchEngine } from './engine.ts';
import { median, spread } from './figures.ts';
import { randomBatch } from './rows.ts';

const STORED_ROWS = 3_000_000;
const STORED_DAYS = 60;
const BATCH_ROWS = 50_000;
const BATCHES_PER_ROUND = 3;
const ROUND_ROWS = BATCHES_PER_ROUND * BATCH_ROWS;

/**
 * Measures the cost of storing each event once: batches through the writer's own code, compared with plain inserts of
 * the same bytes into the same kind of table, one after the other.
 *
 * @returns whether all events are stored once
 */
export async function benchExactness(rounds: number): Promise<boolean> {
  await using engine = await startBenchEngine();
  const plain = await engine.database('plain');
  const staged = await engine.database('staged');
  for (const database of [plain, staged]) await database.fill(STORED_ROWS, STORED_DAYS);

  const ways: Record<string, (batch: RowBatch) => Promise<void>> = {
    'plain insert': (batch) => plain.insert(batch),
    writer: (batch) => staged.store(batch),
    'plain insert again': (batch) => plain.insert(batch),
    'plain insert, parsed by one thread': (batch) => plain.insert(batch, { input_format_parallel_parsing: 0 }),
  };
  const costs: Record<string, Cost[]> = Object.fromEntries(Object.keys(ways).map((name) => [name, []]));
  // Round -1 warms up.
  for (let round = -1; round < rounds; round += 1) {
    if (round === 0) staged.forgetStatements();
    const totals: Record<string, Cost> = {};
    await engine.stopMerges();
    for (let batchNumber = 0; batchNumber < BATCHES_PER_ROUND; batchNumber += 1) {
      for (const [name, way] of Object.entries(ways)) {
        const batch = recentBatch();
        const { ms, cpuUs } = await engine.measure(() => way(batch));
        const total = totals[name] ?? { ms: 0, cpuUs: 0 };
        totals[name] = { ms: total.ms + ms, cpuUs: total.cpuUs + cpuUs };
      }
    }
    await engine.resumeMerges();
    if (round < 0) continue;
    for (const [name, total] of Object.entries(totals)) costs[name]?.push(total);
  }

  const rates = (name: string) => (costs[name] ?? []).map(({ ms }) => (ROUND_ROWS * 1_000) / ms);
  const cpu = (name: string) => (costs[name] ?? []).map(({ cpuUs }) => cpuUs / ROUND_ROWS);
  const writerTo = (values: (name: string) => number[], name: string) =>
    (median(values('writer')) / median(values(name))).toFixed(2);
  console.log(`Batches of ${BATCH_ROWS} new events: median (lowest to highest) of ${rounds} rounds`);
  const lines = Object.keys(ways).map((name) => [
    name,
    {
      'rows/s': spread(rates(name)),
      'CPU µs a row, ClickHouse': spread(cpu(name), 2),
      'writer ÷ it, rows/s': writerTo(rates, name),
      'writer ÷ it, CPU': writerTo(cpu, name),
    },
  ]);
  console.table(Object.fromEntries(lines));
  staged.printStatements(rounds * BATCHES_PER_ROUND);
  return await staged.verdict(STORED_ROWS + (rounds + 1) * ROUND_ROWS);
}

function recentBatch(): RowBatch {
  const now = Date.now();
  return randomBatch(BATCH_ROWS, () => now - Math.floor(Math.random() * 2_000));
}
