/** How often the pace of a reader is looked at, in milliseconds. */
export const PACE_MS = 2_000;

/** Less than this in a look's time is slow: 64 KiB a second. */
const BYTES_MIN = 128 * 1_024;

/** Knows whether the reader of a result takes it slowly. */
export class ReadingPace {
  #taken = 0;
  #isOffered = false;

  /** Passes chunks on, and notes what the reader takes. */
  async *watch(chunks: AsyncIterable<Buffer>): AsyncGenerator<Buffer, void, undefined> {
    for await (const chunk of chunks) {
      this.#isOffered = true;
      yield chunk;
      this.#isOffered = false;
      this.#taken += chunk.length;
    }
  }

  /** Returns whether the reader took little since the last call, and has something to take. */
  isSlow(): boolean {
    const isSlow = this.#isOffered && this.#taken < BYTES_MIN;
    this.#taken = 0;
    return isSlow;
  }
}
