import { setTimeout as delay } from 'node:timers/promises';

/** Waits `ms` milliseconds, or less when the signal aborts; never throws. */
export async function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  await delay(ms, undefined, signal ? { signal } : {}).catch(() => undefined);
}

/** Delays in milliseconds for retry after retry: exponential up to `maxMs`, each drawn between half and the whole. */
export function* backoff(firstMs: number, maxMs: number, random: () => number = Math.random): Generator<number, never> {
  for (let ms = firstMs; ; ms = Math.min(ms * 2, maxMs)) yield ms * (0.5 + random() / 2);
}
