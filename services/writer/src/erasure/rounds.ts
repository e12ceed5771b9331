import type { Logger } from '@sluice/shared/base/log';
import { sleep } from '@sluice/shared/base/retry';
import type { ClickHouseClient } from '@sluice/shared/clickhouse/client';
import { ClickHouseSession } from '@sluice/storage/clickhouse/clickhouse-session';
import { MoveRunning, RemovalRunning } from '@sluice/storage/clickhouse/removals';
import type { Replicas } from '@sluice/storage/clickhouse/replicas';
import type { UseTemporaryTables } from '@sluice/storage/clickhouse/temporary-tables';

export interface RoundsDependencies {
  readonly client: ClickHouseClient;
  /** Of the other replicas. Default: there are none. */
  readonly others?: readonly ClickHouseClient[] | undefined;
  /** Undefined where a server has its rows alone. Nothing has to be read before where every statement finds all that was committed. */
  readonly replicas?: (Pick<Replicas, 'settle'> & Partial<Pick<Replicas, 'readLinks' | 'readDeleted'>>) | undefined;
  /** Default: in a session. */
  readonly useTables?: UseTemporaryTables | undefined;
  readonly writerId: string;
  readonly logger: Logger;
  /** Counts rounds that failed. */
  readonly failures: { inc(): void };
}

export interface RoundsOptions {
  /** The pause before each round, in milliseconds. */
  readonly intervalMs: number;
  /** How long after a round that has succeeded there is none, in milliseconds; the next owner begins with one. Default 0. */
  readonly restMs?: number;
  /** What it does, for the log. */
  readonly what: string;
}

/**
 * What is done in rounds in the background, such as an erasure, or moving old events. Only one writer of the group takes them: the one
 * that owns the first partition of the events. A round that fails is logged, and repeated.
 */
export abstract class Rounds {
  readonly #options: RoundsOptions;
  readonly #deps: Pick<RoundsDependencies, 'logger' | 'failures' | 'useTables'>;
  readonly #stopping = new AbortController();
  #isOwner = false;
  /** When the next round may begin, on the clock of `performance`. */
  #roundFrom = 0;
  #running: Promise<void> | undefined;

  protected constructor(options: RoundsOptions, deps: Pick<RoundsDependencies, 'logger' | 'failures' | 'useTables'>) {
    this.#options = options;
    this.#deps = deps;
  }

  /** Does all that is to be done now. What it throws is logged, and the next round goes on. */
  abstract takeRound(): Promise<void>;

  /** Whether a round may go on: not once another writer owns the partition, or this one stops. */
  protected get mayGoOn(): boolean {
    return this.#isOwner && !this.#stopping.signal.aborted;
  }

  /** Works with temporary tables, at the server of a client. */
  protected get useTables(): UseTemporaryTables {
    return this.#deps.useTables ?? ClickHouseSession.use;
  }

  /** Aborts when the rounds are to end. */
  protected get stopping(): AbortSignal {
    return this.#stopping.signal;
  }

  start(): void {
    this.#running ??= this.#run();
  }

  setOwner(isOwner: boolean): void {
    if (!isOwner) this.#roundFrom = 0;
    this.#isOwner = isOwner;
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#running;
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      await sleep(this.#options.intervalMs, signal);
      if (!this.mayGoOn || performance.now() < this.#roundFrom) continue;
      await this.#take().catch((error) => this.#report(error));
    }
  }

  async #take(): Promise<void> {
    await this.takeRound();
    this.#roundFrom = performance.now() + (this.#options.restMs ?? 0);
  }

  #report(error: Error): void {
    const { logger, failures } = this.#deps;
    if (error instanceof RemovalRunning || error instanceof MoveRunning) {
      logger.info(error.message);
      return;
    }
    failures.inc();
    logger.warn({ reason: error.message }, `${this.#options.what} failed; retrying`);
  }
}
