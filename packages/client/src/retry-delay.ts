const BASE_MS = 500;

const BACKOFF_MS_MAX = 30_000;

/** A proxy's mistake, or a wrong clock of this machine, must not silence a client for longer. */
const RETRY_AFTER_MS_MAX = 300_000;

/**
 * Returns how long to wait before the next request, in milliseconds: exponential backoff with full jitter, after what
 * `Retry-After` asks for, which is 5 minutes at most.
 *
 * @param failures requests that failed in a row, at least 1
 * @param retryAfter the header: seconds, or an HTTP date; anything else counts as none
 * @param now in milliseconds since 1970
 */
export function retryDelayMs(failures: number, retryAfter: string | null | undefined, now: number): number {
  const seconds = Number(retryAfter);
  const askedMs = (seconds >= 0 ? seconds * 1_000 : Date.parse(retryAfter as string) - now) || 0;
  const jitterMs = Math.random() * Math.min(BACKOFF_MS_MAX, BASE_MS * 2 ** failures);
  return Math.min(RETRY_AFTER_MS_MAX, Math.max(0, askedMs)) + jitterMs;
}
