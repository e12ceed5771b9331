import { once } from 'node:events';
import { onTestFinished, vi } from 'vitest';
import type { ClickHouseReader, ReadRequest } from '../clickhouse/clickhouse-reader.ts';
import type { RowBatches } from '../clickhouse/row-parser.ts';

/** While it is closed, these queries hold their slots and are not sent. */
export function createGate(isHeld: (request: ReadRequest) => boolean) {
  const opening = new AbortController();
  async function* held<Item>(request: ReadRequest, items: () => AsyncGenerator<Item>): AsyncGenerator<Item> {
    if (isHeld(request) && !opening.signal.aborted) await once(opening.signal, 'abort');
    yield* items();
  }
  return {
    open: () => opening.abort(),
    wrap: (reader: ClickHouseReader): ClickHouseReader => ({
      ...reader,
      read: (request) => held(request, () => reader.read(request)) as RowBatches,
      readBytes: (request) => held(request, () => reader.readBytes(request)),
    }),
  };
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
