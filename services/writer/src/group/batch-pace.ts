import { sleep } from '@sluice/shared/base/retry';

export interface BatchPaceOptions {
  /** How old a row may be when it is stored, in milliseconds, as long as batches are not full. */
  readonly ageMs: number;
  /** The size of a full batch, in bytes of rows. */
  readonly bytesMax: number;
}

/**
 * Decides when the next batch is fetched; until then Kafka gathers its rows. A batch costs ClickHouse as much as
 * thousands of events, however few it holds, so rows wait for others:
 *
 *     after quiet    a row is stored as soon as it comes
 *     a load         a batch begins so long after the last one that it is stored when its first row is `ageMs` old
 *     a backlog      one full batch after the other
 */
export class BatchPace {
  readonly #options: BatchPaceOptions;
  #nextAt = Number.NEGATIVE_INFINITY;

  constructor(options: BatchPaceOptions) {
    this.#options = options;
  }

  /**
   * Notes that a batch is stored.
   *
   * @param startedAt when storing it began, and `now`: in milliseconds, by `performance.now()`
   * @param bytes of its rows
   */
  stored(startedAt: number, bytes: number, now = performance.now()): void {
    this.#nextAt = startedAt + this.#intervalMs(now - startedAt, bytes);
  }

  #intervalMs(tookMs: number, bytes: number): number {
    const { ageMs, bytesMax } = this.#options;
    if (bytes >= bytesMax / 2) return 0;
    // At least half of it, or a slow ClickHouse would get smaller batches and more work.
    return Math.max(ageMs - tookMs, ageMs / 2);
  }

  /** Returns how long to wait before the next batch is fetched, in milliseconds. */
  restMs(now = performance.now()): number {
    return Math.max(0, this.#nextAt - now);
  }

  /** Resolves when the next batch may be fetched, or when the signal aborts. It never throws. */
  async rest(signal: AbortSignal): Promise<void> {
    const ms = this.restMs();
    if (ms > 0) await sleep(ms, signal);
  }
}
