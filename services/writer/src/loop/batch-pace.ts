import { sleep } from '@sluice/shared/retry';

/** Small batches begin this many times as far apart as the last one took: storing leaves most of the time to queries. */
const SHARE_OF_TIME = 3;

/** A batch of this many bytes, some 200 events, shows a steady load. */
const STEADY_BYTES = 128 * 1_024;

export interface BatchPaceOptions {
  /** How old a row of a steady load may be when it is stored, in milliseconds, as long as batches are not full. */
  readonly ageMs: number;
  /** The size of a full batch, in bytes of rows. */
  readonly bytesMax: number;
}

/**
 * Decides when the next batch is fetched; until then Kafka gathers its rows. A batch costs ClickHouse as much as
 * thousands of events, however few it holds, so rows wait for others when many come:
 *
 *     now and then   stored as soon as they come
 *     a few          a batch begins three times as long after the last one as that took to store
 *     many           a batch begins so long after the last one that it is stored when its first row is `ageMs` old
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
    const steadyMs = Math.max(ageMs - tookMs, ageMs / 2);
    return bytes >= STEADY_BYTES ? steadyMs : Math.min(steadyMs, SHARE_OF_TIME * tookMs);
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
