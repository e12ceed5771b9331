import { ErrorCodes } from '@sluice/shared/clickhouse/error-codes';
import { Problem } from '@sluice/shared/http/problem';
import { MemoryRefused, overloaded, RETRY_AFTER_SECONDS } from '../http/http.ts';
import type { QueryOutcome } from '../metrics.ts';
import { SlotRefused } from './query-slots.ts';
import { ClickHouseException, ConnectionFailure, DeletionsUnknown, QueryTooLong } from './read-failures.ts';

/** What a query may read, take and hold, and how long and deep its text may be. */
const TOO_EXPENSIVE = new ErrorCodes(
  'TOO_MANY_ROWS',
  'TOO_MANY_BYTES',
  'TIMEOUT_EXCEEDED',
  'TOO_SLOW',
  'SET_SIZE_LIMIT_EXCEEDED',
  'MEMORY_LIMIT_EXCEEDED',
  'TOO_MANY_ROWS_OR_BYTES',
  'TOO_BIG_AST',
  'QUERY_IS_TOO_LARGE',
);

const OVERLOADED = new ErrorCodes(
  'CANNOT_ALLOCATE_MEMORY',
  'QUOTA_EXCEEDED',
  'TOO_MANY_SIMULTANEOUS_QUERIES',
  'CANNOT_SCHEDULE_TASK',
  'SERVER_OVERLOADED',
);

/** Not reached (by query-api or by another server), not started, not migrated, not allowed to log in or to read, or stopped by an operator. */
const UNAVAILABLE = new ErrorCodes(
  'UNKNOWN_TABLE',
  'UNKNOWN_DATABASE',
  'READONLY',
  'UNKNOWN_USER',
  'WRONG_PASSWORD',
  'REQUIRED_PASSWORD',
  'AUTHENTICATION_FAILED',
  'ACCESS_DENIED',
  'DNS_ERROR',
  'SOCKET_TIMEOUT',
  'NETWORK_ERROR',
  'ABORTED',
  'TABLE_IS_READ_ONLY',
  'ALL_CONNECTION_TRIES_FAILED',
  'QUERY_WAS_CANCELLED',
  'NO_REMOTE_SHARD_AVAILABLE',
  'ALL_REPLICAS_LOST',
  'S3_ERROR',
  'KEEPER_EXCEPTION',
);

/**
 * Returns the outcome of a query that failed without being cancelled. An error that came neither from ClickHouse nor
 * from the connection to it is an error of this service.
 */
export function outcomeOf(error: unknown): Exclude<QueryOutcome, 'ok' | 'cancelled' | 'invalid'> {
  if (error instanceof SlotRefused || error instanceof MemoryRefused) return 'overloaded';
  if (error instanceof QueryTooLong) return 'too_expensive';
  if (error instanceof ConnectionFailure || isTimeout(error)) return 'unavailable';
  if (!(error instanceof ClickHouseException)) return 'failed';
  if (isServerOutOfMemory(error)) return 'overloaded';
  if (TOO_EXPENSIVE.has(error.code)) return 'too_expensive';
  if (OVERLOADED.has(error.code)) return 'overloaded';
  return UNAVAILABLE.has(error.code) ? 'unavailable' : 'failed';
}

/** Whether the time of a query was up while it ran. */
export function isTimeout(error: unknown): boolean {
  return error instanceof DOMException && error.name === 'TimeoutError';
}

const OUT_OF_TIME = new ErrorCodes('TIMEOUT_EXCEEDED', 'TOO_SLOW');

/** Whether a query failed for its time alone: it may succeed over a shorter range, as `query_too_expensive` says. */
export function isOutOfTime(error: unknown): boolean {
  return isTimeout(error) || (error instanceof ClickHouseException && OUT_OF_TIME.has(error.code));
}

/** The groups of a query count as rows. */
const TOO_MANY_GROUPS = new ErrorCodes('TOO_MANY_ROWS');

/** Whether a query failed for what it kept in memory, by its bytes or its groups: it may succeed if it keeps less. */
export function isOutOfSpace(error: unknown): boolean {
  return isOutOfMemory(error) || (error instanceof ClickHouseException && TOO_MANY_GROUPS.has(error.code));
}

const OUT_OF_BYTES = new ErrorCodes('TOO_MANY_BYTES');

/** Whether a query has read more than it may. Rows of other workspaces that lie beside those of its own count as well. */
export function isOutOfBytes(error: unknown): boolean {
  return error instanceof ClickHouseException && OUT_OF_BYTES.has(error.code);
}

const OUT_OF_MEMORY = new ErrorCodes('MEMORY_LIMIT_EXCEEDED');

/** Whether a query needed more memory than it may have, rather than the server more than it has. */
export function isOutOfMemory(error: unknown): boolean {
  return error instanceof ClickHouseException && OUT_OF_MEMORY.has(error.code) && !isServerOutOfMemory(error);
}

const UNREACHABLE = 'The event store cannot be reached; try again.';
const DELETIONS_UNKNOWN = 'The event store that can be reached does not have the latest deletions yet; try again.';

/** Returns the error response to a request whose query failed. It reveals neither the query nor the server. */
export function queryProblem(outcome: Exclude<QueryOutcome, 'ok' | 'invalid'>, cause: unknown): Problem {
  switch (outcome) {
    case 'too_expensive':
      if (cause instanceof QueryTooLong) return tooLong(cause);
      return new Problem(
        'query_too_expensive',
        'The query needs more time or memory, or reads more, than its budget allows; narrow it down, by dates first.',
        { cause },
      );
    case 'overloaded':
      return overloaded(cause);
    case 'unavailable':
    case 'cancelled':
      return new Problem('store_unavailable', cause instanceof DeletionsUnknown ? DELETIONS_UNKNOWN : UNREACHABLE, {
        retryAfter: RETRY_AFTER_SECONDS,
        cause,
      });
    case 'failed':
      return new Problem('internal', 'Something went wrong inside the service.', { cause });
  }
}

/**
 * Of what fits into a request, only properties make a query too long for ClickHouse: their names and values are in it once
 * for each place that a name can mean.
 */
export function tooLong(cause: QueryTooLong): Problem {
  const message =
    'the names and values of the properties are too long together; use fewer or shorter ones, and names with fewer dots';
  const errors = [{ path: 'properties', code: 'too_long', message }];
  return new Problem('invalid_request', 'The parameters are too long.', { errors, cause });
}

/** Whether the memory of the whole server was used up, rather than the budget of this query. */
function isServerOutOfMemory({ code, message }: ClickHouseException): boolean {
  return OUT_OF_MEMORY.has(code) && /\(total\)/.test(message);
}
