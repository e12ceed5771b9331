/** A full bucket holds the tokens of two seconds. Retry-After is in whole seconds: one second would slow clients down. */
const BURST_SECONDS = 2;

/**
 * Holds something to a rate: full at first, refilled as time passes. It costs two numbers and no timer. Each `take` names
 * the rate, so the rate may change.
 */
export class TokenBucket {
  #tokens = Number.POSITIVE_INFINITY;
  #filledAtMs = Number.NEGATIVE_INFINITY;

  /**
   * Takes `count` tokens if the bucket holds at least one, and goes into debt for the others. So a request may be larger
   * than the whole bucket, and the requests after it wait longer.
   *
   * @returns 0, or when the bucket is empty the whole seconds until it holds a token
   */
  take(count: number, perSecond: number, nowMs: number): number {
    const earned = ((nowMs - this.#filledAtMs) / 1_000) * perSecond;
    this.#tokens = Math.min(this.#tokens + earned, perSecond * BURST_SECONDS);
    this.#filledAtMs = nowMs;
    if (this.#tokens < 1) return Math.ceil((1 - this.#tokens) / perSecond);
    this.#tokens -= count;
    return 0;
  }

  /** Undoes a `take`. Tokens that do not fit into the bucket are lost. */
  giveBack(count: number): void {
    this.#tokens += count;
  }
}
