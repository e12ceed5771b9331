import { Problem } from '@sluice/shared/http/problem';

/** Seconds after which a client should send its request again. */
export const RETRY_AFTER_SECONDS = 2;

export function overloaded(): Problem {
  return new Problem('overloaded', 'The service is busy; send the request again.', { retryAfter: RETRY_AFTER_SECONDS });
}

export function eventLogUnavailable(
  cause?: unknown,
  detail = 'The event log cannot be reached; send the request again.',
): Problem {
  return new Problem('event_log_unavailable', detail, { retryAfter: RETRY_AFTER_SECONDS, cause });
}
