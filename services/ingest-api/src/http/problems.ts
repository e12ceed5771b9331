import { Problem, RETRY_BUSY_SECONDS } from '@sluice/shared/http/problem';

export function overloaded(): Problem {
  return new Problem('overloaded', 'The service is busy; send the request again.', { retryAfter: RETRY_BUSY_SECONDS });
}

export function eventLogUnavailable(
  cause?: unknown,
  detail = 'The event log cannot be reached; send the request again.',
): Problem {
  return new Problem('event_log_unavailable', detail, { retryAfter: RETRY_BUSY_SECONDS, cause });
}
