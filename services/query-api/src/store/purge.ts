import type { ClickHouseClient } from '@sluice/shared/clickhouse/client';

/** How long one run of the statements may take, in milliseconds. */
const RUN_MS_MAX = 60_000;

/** Removes rows that count no more, beside the requests that left them: one run at a time, however many of them there are. */
export class Purge {
  readonly #client: ClickHouseClient;
  readonly #statements: readonly string[];
  #running: Promise<void> | undefined;
  #isWanted = false;

  /** @param statements may be repeated; they run one after the other, until one fails */
  constructor(client: ClickHouseClient, statements: readonly string[]) {
    this.#client = client;
    this.#statements = statements;
  }

  /** Resolves when what is there now is removed, or that has failed: then the next one removes it. */
  async run(): Promise<void> {
    // A run that has begun may not see the newest rows.
    this.#isWanted = true;
    this.#running ??= this.#runAll().finally(() => {
      this.#running = undefined;
    });
    await this.#running;
  }

  async #runAll(): Promise<void> {
    while (this.#isWanted) {
      this.#isWanted = false;
      const abort_signal = AbortSignal.timeout(RUN_MS_MAX);
      try {
        for (const query of this.#statements) await this.#client.command({ query, abort_signal });
      } catch {
        return;
      }
    }
  }
}
