import { sleep } from '@sluice/shared/base/retry';

/** Waits of fewer milliseconds are put off: a timer is not that exact. */
const WAIT_MS_MIN = 20;

/** Keeps a command at its share of the machine: it waits after what it has read. */
export class Pace {
  readonly #bytesPerMs: number;
  readonly #signal: AbortSignal;
  #dueMs = performance.now();

  /** @param megabytes how many may be read in a second; 0: as many as possible */
  constructor(megabytes: number, signal: AbortSignal) {
    this.#bytesPerMs = megabytes * 1_000;
    this.#signal = signal;
  }

  /** @throws the reason of the signal */
  async spent(bytes: number): Promise<void> {
    this.#signal.throwIfAborted();
    if (this.#bytesPerMs === 0) return;
    const now = performance.now();
    // What was not used is not caught up on.
    this.#dueMs = Math.max(this.#dueMs, now) + bytes / this.#bytesPerMs;
    if (this.#dueMs - now >= WAIT_MS_MIN) await sleep(this.#dueMs - now);
    this.#signal.throwIfAborted();
  }
}
