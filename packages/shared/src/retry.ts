import { setTimeout as delay } from 'node:timers/promises';

/** Waits `ms` milliseconds, or less when the signal aborts; never throws. */
export async function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  await delay(ms, undefined, signal ? { signal } : {}).catch(() => undefined);
}

/** Delays in milliseconds for retry after retry: exponential up to `maxMs`, each drawn between half and the whole. */
export function* backoff(firstMs: number, maxMs: number, random: () => number = Math.random): Generator<number, never> {
  for (let ms = firstMs; ; ms = Math.min(ms * 2, maxMs)) yield ms * (0.5 + random() / 2);
}

export interface RetryOptions {
  /** The delay before the second attempt, in milliseconds; it doubles from attempt to attempt. */
  readonly firstMs: number;
  readonly maxMs: number;
  /** Ends the retries. */
  readonly signal: AbortSignal;
  /** Called with each failure; what it throws ends the retries. */
  readonly onFailure: (error: unknown) => void;
}

/**
 * Does the work again and again until it succeeds.
 *
 * @throws the signal's reason once it has aborted, and what `onFailure` throws
 */
export async function retry<Result>(work: () => Promise<Result>, options: RetryOptions): Promise<Result> {
  const { firstMs, maxMs, signal, onFailure } = options;
  const delays = backoff(firstMs, maxMs);
  for (;;) {
    signal.throwIfAborted();
    try {
      return await work();
    } catch (error) {
      onFailure(error);
    }
    await sleep(delays.next().value, signal);
  }
}
