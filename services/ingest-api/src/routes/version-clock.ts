/**
 * Versions order changes (*last write wins*), and tell what came before a deletion. One process never returns the same
 * version twice. Between processes the wall clocks decide. Their resolution of a millisecond is enough: gathering and
 * Kafka's acknowledgement take longer, so a change sent after another was acknowledged has the higher version.
 */
export class VersionClock {
  readonly #nowMs: () => number;
  #last = 0;

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
  }

  /**
   * Returns the next version: microseconds since 1970, and higher than every version before, whatever the wall clock does.
   *
   * @param count how many versions are taken, one after the other; the first one is returned
   */
  next(count = 1): number {
    const first = Math.max(this.#last + 1, this.#nowMs() * 1_000);
    this.#last = first + count - 1;
    return first;
  }
}
