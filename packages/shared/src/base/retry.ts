import { setTimeout as delay } from 'node:timers/promises';

/** Waits `ms` milliseconds, or until the signal aborts. It never throws. */
export async function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  await delay(ms, undefined, signal ? { signal } : {}).catch(() => undefined);
}

/** Waits until the work has ended, but at most `ms` milliseconds: then it goes on by itself. @throws what it throws before */
export async function atMost(ms: number, work: Promise<unknown>): Promise<void> {
  const ended = new AbortController();
  await Promise.race([work.finally(() => ended.abort()), sleep(ms, ended.signal)]);
}

/** The delays between retries, in milliseconds: exponential up to `maxMs`, each random between its half and its whole. */
export function* backoff(firstMs: number, maxMs: number, random: () => number = Math.random): Generator<number, never> {
  for (let ms = firstMs; ; ms = Math.min(ms * 2, maxMs)) yield ms * (0.5 + random() / 2);
}

export interface RetryOptions {
  /** The delay before the second attempt, in milliseconds. It doubles with each attempt, up to `maxMs`. */
  readonly firstMs: number;
  readonly maxMs: number;
  /** Ends the retries. */
  readonly signal: AbortSignal;
  /** Called with each failure. When it throws, the retries end. */
  readonly onFailure: (error: unknown) => void;
}

/**
 * Runs the work until it succeeds, and returns its result.
 *
 * @throws the signal's reason after it has aborted, or what `onFailure` throws
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
