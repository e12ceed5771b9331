import { type Cost, startBenchEngine } from './engine.ts';
import { spread } from './figures.ts';
import { ROWS_PER_MESSAGE, randomBatch } from './rows.ts';

const STORED_ROWS = 10_000_000;
const DAYS = 182;
const BATCH_ROWS = 50_000;
/** Two of a hundred rows are repeats from the batch before. */
const REPEATED_MESSAGES = (0.02 * BATCH_ROWS) / ROWS_PER_MESSAGE;
const NEW_ROWS = BATCH_ROWS - REPEATED_MESSAGES * ROWS_PER_MESSAGE;

/**
 * Measures the import of history in random order: each batch holds events of half a year, so that their keys are looked
 * up in the whole table.
 *
 * @returns whether all events are stored once
 */
export async function benchHistory(rounds: number): Promise<boolean> {
  await using engine = await startBenchEngine();
  const database = await engine.database('history');
  await database.fill(STORED_ROWS, DAYS);

  const until = Date.now();
  const scatteredBatch = (rows: number) =>
    randomBatch(rows, () => until - Math.floor(Math.random() * DAYS * 24 * 3_600_000));
  const costs: Cost[] = [];
  // The first batch warms up.
  let last = scatteredBatch(NEW_ROWS);
  await database.store(last);
  database.forgetStatements();
  for (let round = 0; round < rounds; round += 1) {
    const batch = scatteredBatch(NEW_ROWS);
    const repeats = last.events.slice(0, REPEATED_MESSAGES);
    await engine.stopMerges();
    costs.push(await engine.measure(() => database.store({ ...batch, events: [...batch.events, ...repeats] })));
    await engine.resumeMerges();
    last = batch;
  }

  console.log(`Batches of ${BATCH_ROWS} events of half a year: median (lowest to highest) of ${rounds}`);
  console.table({
    'events/s': spread(costs.map(({ ms }) => (BATCH_ROWS * 1_000) / ms)),
    'CPU µs an event, ClickHouse': spread(
      costs.map(({ cpuUs }) => cpuUs / BATCH_ROWS),
      1,
    ),
  });
  database.printStatements(rounds);
  return await database.verdict(STORED_ROWS + (rounds + 1) * NEW_ROWS);
}
