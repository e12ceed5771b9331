/** How many seconds' worth a full bucket holds. Retry-After is in whole seconds, so one alone would slow a client down. */
const BURST_SECONDS = 2;

/** What may still be done of a rate: full at first, and refilled as time passes. It costs two numbers and no timer. */
export interface TokenBucket {
  /**
   * Takes `count` tokens at once if there is one at least, and goes into debt for the others: so a request larger than
   * the whole bucket is possible, and those after it wait the longer.
   *
   * @returns 0, or the whole seconds after which there is a token again
   */
  take(count: number, perSecond: number, nowMs: number): number;
  /** Undoes a `take`; what would not fit into the bucket is lost. */
  giveBack(count: number): void;
}

/** A full bucket. The rate comes with each use, so it may change. */
export function createTokenBucket(): TokenBucket {
  let tokens = Number.POSITIVE_INFINITY;
  let filledAtMs = Number.NEGATIVE_INFINITY;
  return {
    take(count, perSecond, nowMs) {
      const earned = ((nowMs - filledAtMs) / 1_000) * perSecond;
      tokens = Math.min(tokens + earned, perSecond * BURST_SECONDS);
      filledAtMs = nowMs;
      if (tokens < 1) return Math.ceil((1 - tokens) / perSecond);
      tokens -= count;
      return 0;
    },
    giveBack(count) {
      tokens += count;
    },
  };
}
