import type { BenchDatabase } from '../processes/database.ts';
import type { Traffic } from './traffic.ts';

const BATCH_ROWS = 50_000;
const STREAMED_ROWS = 5_000;

/** Stores events with the writer's own statements. */
export async function storeTraffic(database: BenchDatabase, traffic: Traffic, events: number): Promise<void> {
  const startedAt = performance.now();
  let batch = traffic.next(Math.min(BATCH_ROWS, events));
  for (let stored = 0; stored < events; stored += BATCH_ROWS) {
    const storing = database.store(batch);
    // Meanwhile, the next batch is created.
    if (stored + BATCH_ROWS < events) batch = traffic.next(Math.min(BATCH_ROWS, events - stored - BATCH_ROWS));
    await storing;
  }
  const seconds = (performance.now() - startedAt) / 1_000;
  console.error(`${events.toLocaleString('en')} events stored in ${seconds.toFixed(0)} s`);
}

/** Stores a batch of 5,000 events each second until it is stopped. */
export class TrafficStream {
  readonly #database: BenchDatabase;
  readonly #traffic: Traffic;
  readonly #running: Promise<void>;
  #stored = 0;
  #stopped = false;

  constructor(database: BenchDatabase, traffic: Traffic) {
    this.#database = database;
    this.#traffic = traffic;
    this.#running = this.#run();
  }

  /** Returns how many events were stored. */
  async stop(): Promise<number> {
    this.#stopped = true;
    await this.#running;
    return this.#stored;
  }

  async #run(): Promise<void> {
    while (!this.#stopped) {
      const startedAt = performance.now();
      await this.#database.store(this.#traffic.next(STREAMED_ROWS));
      this.#stored += STREAMED_ROWS;
      const rest = 1_000 - (performance.now() - startedAt);
      await new Promise((resolve) => setTimeout(resolve, Math.max(0, rest)));
    }
  }
}
