import { Problem } from '@sluice/shared/http/problem';

/** Seconds. */
const RETRY_AFTER = 5;

/**
 * Returns the problem of a request whose state in ClickHouse could not be read or stored.
 *
 * @param store what cannot be reached
 */
export function unavailable(cause?: unknown, store = 'The event store'): Problem {
  const detail = `${store} cannot be reached; send the request again.`;
  return new Problem('store_unavailable', detail, { retryAfter: RETRY_AFTER, cause });
}

/** Returns what the work gives. @throws {Problem} those of the work, and `store_unavailable` for any other error */
export async function asUnavailable<Result>(work: Promise<Result>, store?: string): Promise<Result> {
  try {
    return await work;
  } catch (cause) {
    throw cause instanceof Problem ? cause : unavailable(cause, store);
  }
}
