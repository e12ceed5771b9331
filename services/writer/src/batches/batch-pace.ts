import { sleep } from '@sluice/shared/retry';

/** Batches begin this many times as far apart as the last one took: storing leaves most of the time to queries. */
const SHARE_OF_TIME = 3;

export interface BatchPaceOptions {
  /** How far apart batches begin at most, in milliseconds, as long as they are not full. */
  readonly intervalMs: number;
  /** The size of a full batch, in bytes of rows. */
  readonly bytesMax: number;
}

/**
 * Decides when the next batch is fetched; until then Kafka gathers its rows. A batch costs ClickHouse as much as
 * thousands of events, however few it holds, so rows wait for others when many come:
 *
 *     now and then   stored as soon as they come
 *     a few          a batch begins three times as long after the last one as that took to store
 *     many           a batch begins every `intervalMs`
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
    const { intervalMs, bytesMax } = this.#options;
    const isBehind = bytes >= bytesMax / 2;
    this.#nextAt = startedAt + (isBehind ? 0 : Math.min(intervalMs, SHARE_OF_TIME * (now - startedAt)));
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
