/** How often the pace of a reader is looked at, in milliseconds. */
export const PACE_MS = 2_000;

/** A reader is slow when chunks wait for it for longer than this, in milliseconds, while it takes {@link TAKEN_BYTES}. */
const WAITING_MS_MAX = 20_000;

/**
 * Some 100 kB a second. A connection forwards chunks in bursts: the buffers of the system hold up to some MiB, and take
 * more when a good part of that is sent. So the pace shows over many seconds only.
 */
const TAKEN_BYTES = 2 * 1_024 * 1_024;

/** Knows whether the reader of a result takes it slowly. Time in which there is nothing to take does not count. */
export class ReadingPace {
  readonly #now: () => number;
  #offeredAt: number | undefined;
  #waitingMs = 0;
  #takenBytes = 0;

  /** @param now returns milliseconds of a clock that is never set; the default is that of the process */
  constructor(now = () => performance.now()) {
    this.#now = now;
  }

  /** Forwards chunks, and notes how long the reader takes for them. */
  async *watch(chunks: AsyncIterable<Buffer>): AsyncGenerator<Buffer, void, undefined> {
    for await (const chunk of chunks) {
      this.#offeredAt = this.#now();
      yield chunk;
      this.#waitingMs += this.#offeredForMs();
      this.#offeredAt = undefined;
      this.#takenBytes += chunk.length;
      if (this.#takenBytes < TAKEN_BYTES) continue;
      this.#waitingMs = 0;
      this.#takenBytes = 0;
    }
  }

  isSlow(): boolean {
    return this.#waitingMs + this.#offeredForMs() > WAITING_MS_MAX;
  }

  #offeredForMs(): number {
    return this.#offeredAt === undefined ? 0 : this.#now() - this.#offeredAt;
  }
}
