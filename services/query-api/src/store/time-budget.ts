/**
 * The time that the queries of one request may run, all together. It stands still while one of them waits for a query
 * slot: for that there is as much time again.
 */
export class TimeBudget {
  readonly #timeoutMs: number;
  readonly #startedAt = performance.now();
  #waiting = 0;
  #waitingSince = 0;
  #waitedMs = 0;

  constructor(timeoutMs: number) {
    this.#timeoutMs = timeoutMs;
  }

  /**
   * Returns what is left of a share of the time, in milliseconds; 1 when nothing is: a query then fails as one does that
   * takes too long.
   */
  leftMs(share = 1): number {
    const ranMs = performance.now() - this.#startedAt - this.#waitedUntilNowMs();
    return Math.max(1, Math.floor(share * this.#timeoutMs - ranMs));
  }

  /** Returns how long the next query may wait, in milliseconds. */
  waitLeftMs(): number {
    return Math.max(1, Math.floor(this.#timeoutMs - this.#waitedUntilNowMs()));
  }

  /** Returns what a wait returns, and leaves its time out. */
  async waiting<Result>(wait: Promise<Result>): Promise<Result> {
    if (this.#waiting === 0) this.#waitingSince = performance.now();
    this.#waiting += 1;
    try {
      return await wait;
    } finally {
      this.#waiting -= 1;
      if (this.#waiting === 0) this.#waitedMs += performance.now() - this.#waitingSince;
    }
  }

  #waitedUntilNowMs(): number {
    return this.#waitedMs + (this.#waiting > 0 ? performance.now() - this.#waitingSince : 0);
  }
}
