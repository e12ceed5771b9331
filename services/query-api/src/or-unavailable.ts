import { Problem } from '@sluice/shared/http/problem';

/** Seconds. */
const RETRY_AFTER = 5;

/** Returns the problem of a request whose state in ClickHouse could not be read or stored. */
export function unavailable(cause?: unknown): Problem {
  const detail = 'The event store cannot be reached; send the request again.';
  return new Problem('store_unavailable', detail, { retryAfter: RETRY_AFTER, cause });
}

/** Returns what the work gives. @throws {Problem} those of the work, and `store_unavailable` for any other error */
export async function orUnavailable<Result>(work: Promise<Result>): Promise<Result> {
  try {
    return await work;
  } catch (cause) {
    throw cause instanceof Problem ? cause : unavailable(cause);
  }
}
