import { Problem } from '@sluice/shared/http/problem';

/** The `Retry-After` of a response while ClickHouse is unavailable or busy, or this service is. */
export const RETRY_AFTER_SECONDS = 2;

/** Returns the error response of a service that has too much to do. */
export function overloaded(cause: unknown): Problem {
  return new Problem('overloaded', 'The service is busy; try again.', { retryAfter: RETRY_AFTER_SECONDS, cause });
}
