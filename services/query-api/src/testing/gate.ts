import { once } from 'node:events';
import { onTestFinished, vi } from 'vitest';
import type { ClickHouseReader, ReadRequest, RowBatches } from '../store/clickhouse-reader.ts';

/** While it is closed, some queries hold their slots and are not sent. */
export class Gate {
  readonly #isHeld: (request: ReadRequest) => boolean;
  readonly #opening = new AbortController();

  constructor(isHeld: (request: ReadRequest) => boolean) {
    this.#isHeld = isHeld;
  }

  open(): void {
    this.#opening.abort();
  }

  /** Returns a reader whose queries go through the gate. */
  readonly wrap = (reader: ClickHouseReader): ClickHouseReader => ({
    close: () => reader.close(),
    read: (request) => this.#held(request, () => reader.read(request)) as RowBatches,
    readBytes: (request) => this.#held(request, () => reader.readBytes(request)),
  });

  async *#held<Item>(request: ReadRequest, items: () => AsyncGenerator<Item>): AsyncGenerator<Item> {
    if (this.#isHeld(request) && !this.#opening.signal.aborted) await once(this.#opening.signal, 'abort');
    yield* items();
  }
}

/**
 * Stops the timers that limit how long a query waits for its slot.
 *
 * @returns what lets so many milliseconds pass at once, and starts them again
 */
export function stopTimers(): (ms: number) => void {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  onTestFinished(() => {
    vi.useRealTimers();
  });
  return (ms) => {
    vi.advanceTimersByTime(ms);
    vi.useRealTimers();
  };
}
