import type { RowBatch } from '@sluice/storage/protocol/row-batch';
import { fillEvents, randomBatch } from '../data/rows.ts';
import { BenchEngine, type Cost } from '../processes/engine.ts';
import { type Benchmark, type Figure, figureOf } from '../report/benchmark.ts';

const STORED_DAYS = 60;
const BATCH_ROWS = 50_000;
const BATCHES_PER_ROUND = 3;
const ROUND_ROWS = BATCHES_PER_ROUND * BATCH_ROWS;

const BAR = { atLeast: 0.75 };

export const EXACTNESS: Benchmark<{ rounds: number; events: number }> = {
  name: 'exactness',
  title: 'The price of storing each event once',
  method:
    "Batches of 50,000 new events of 700 bytes through the writer's own code, in turn with plain inserts of as many into the " +
    'same kind of table. The events of 60 days are stored before. Merges are held off while a round is measured.',
  size: { rounds: 7, events: 3_000_000 },
  measure,
};

type Way = 'writer' | 'plain insert' | 'plain insert, parsed by one thread' | 'plain insert again (the noise)';

async function measure({ rounds, events }: { rounds: number; events: number }): Promise<readonly Figure[]> {
  await using engine = await BenchEngine.start();
  const plain = await engine.createDatabase('plain');
  const staged = await engine.createDatabase('staged');
  for (const database of [plain, staged]) await fillEvents(database, events, STORED_DAYS);

  const ways: Readonly<Record<Way, (batch: RowBatch) => Promise<void>>> = {
    writer: (batch) => staged.store(batch),
    'plain insert': (batch) => plain.insert(batch),
    'plain insert, parsed by one thread': (batch) => plain.insert(batch, { input_format_parallel_parsing: 0 }),
    'plain insert again (the noise)': (batch) => plain.insert(batch),
  };
  const costs: Record<string, Cost[]> = Object.fromEntries(Object.keys(ways).map((way) => [way, []]));
  // Round -1 warms up.
  for (let round = -1; round < rounds; round += 1) {
    for (const [way, cost] of Object.entries(await measureRound(engine, ways))) {
      if (round >= 0) costs[way]?.push(cost);
    }
  }
  await staged.expectExactly(events + (rounds + 1) * ROUND_ROWS);
  return figuresOf(costs);
}

async function measureRound(
  engine: BenchEngine,
  ways: Readonly<Record<string, (batch: RowBatch) => Promise<void>>>,
): Promise<Record<string, Cost>> {
  const totals: Record<string, Cost> = {};
  await engine.stopMerges();
  for (let batchNumber = 0; batchNumber < BATCHES_PER_ROUND; batchNumber += 1) {
    for (const [way, store] of Object.entries(ways)) {
      const batch = recentBatch();
      const { ms, cpuUs } = await engine.measure(() => store(batch));
      const total = totals[way] ?? { ms: 0, cpuUs: 0 };
      totals[way] = { ms: total.ms + ms, cpuUs: total.cpuUs + cpuUs };
    }
  }
  await engine.resumeMerges();
  return totals;
}

function figuresOf(costs: Readonly<Record<string, readonly Cost[]>>): Figure[] {
  const writer = costs['writer'] ?? [];
  return Object.entries(costs).flatMap(([way, costsOfWay]) => {
    const figures = [
      figureOf(
        way,
        'rows',
        '/s',
        costsOfWay.map(({ ms }) => (ROUND_ROWS * 1_000) / ms),
      ),
      figureOf(
        way,
        'CPU of ClickHouse a row',
        'µs',
        costsOfWay.map(({ cpuUs }) => cpuUs / ROUND_ROWS),
      ),
    ];
    if (way === 'writer') return figures;
    const rates = costsOfWay.map(({ ms }, round) => ms / (writer[round]?.ms ?? Number.NaN));
    const cpu = costsOfWay.map(({ cpuUs }, round) => (writer[round]?.cpuUs ?? Number.NaN) / cpuUs);
    return [
      ...figures,
      figureOf(way, 'rows/s of the writer ÷ it', '', rates, way === 'plain insert' ? BAR : undefined),
      figureOf(way, 'CPU of the writer ÷ it', '', cpu),
    ];
  });
}

function recentBatch(): RowBatch {
  const now = Date.now();
  return randomBatch(BATCH_ROWS, () => now - Math.floor(Math.random() * 2_000));
}
