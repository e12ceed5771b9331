import type { Logger } from '@sluice/shared/base/log';
import { sleep } from '@sluice/shared/base/retry';
import { MoveRunning, RemovalRunning } from '@sluice/storage/clickhouse/removals';

export interface RoundsOptions {
  /** The pause before each round, in milliseconds. */
  readonly intervalMs: number;
  /** How long after a round that has succeeded there is none, in milliseconds; the next owner begins with one. Default 0. */
  readonly restMs?: number;
  /** What it does, for the log. */
  readonly what: string;
  readonly logger: Logger;
  /** Counts rounds that failed. */
  readonly failures: { inc(): void };
}

/**
 * Rounds of an erasure, or of moving old events, in the background. Only one writer of the group takes them: the one that owns the
 * first partition of the events. A round that fails is logged, and repeated.
 */
export class Rounds {
  readonly #options: RoundsOptions;
  readonly #stopping = new AbortController();
  #isOwner = false;
  /** When the next round may begin, on the clock of `performance`. */
  #roundFrom = 0;
  #running: Promise<void> | undefined;

  constructor(options: RoundsOptions) {
    this.#options = options;
  }

  /** Whether this writer may erase. */
  get mayGoOn(): boolean {
    return this.#isOwner && !this.#stopping.signal.aborted;
  }

  start(takeRound: () => Promise<void>): void {
    this.#running ??= this.#run(takeRound);
  }

  setOwner(isOwner: boolean): void {
    if (!isOwner) this.#roundFrom = 0;
    this.#isOwner = isOwner;
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#running;
  }

  async #run(takeRound: () => Promise<void>): Promise<void> {
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      await sleep(this.#options.intervalMs, signal);
      if (!this.mayGoOn || performance.now() < this.#roundFrom) continue;
      await this.#take(takeRound).catch((error) => this.#report(error));
    }
  }

  async #take(takeRound: () => Promise<void>): Promise<void> {
    await takeRound();
    this.#roundFrom = performance.now() + (this.#options.restMs ?? 0);
  }

  #report(error: Error): void {
    const { what, logger, failures } = this.#options;
    if (error instanceof RemovalRunning || error instanceof MoveRunning) {
      logger.info(error.message);
      return;
    }
    failures.inc();
    logger.warn({ reason: error.message }, `${what} failed; retrying`);
  }
}
