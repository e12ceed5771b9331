import { Problem } from '@sluice/shared/http/problem';
import type { QueryOutcome } from '../metrics.ts';
import { overloaded, RETRY_AFTER_SECONDS } from '../overloaded.ts';
import { MemoryRefused } from '../request-memory.ts';
import { SlotRefused } from './query-slots.ts';
import { ClickHouseException, ConnectionFailure, QueryTooLong } from './read-failures.ts';

/**
 * Budgets: rows to read (158), time (159, 160), set size (191), memory (241), bytes to read (307), result size (396),
 * and the length and depth of the query itself (168, 229).
 */
const TOO_EXPENSIVE: ReadonlySet<number> = new Set([158, 159, 160, 168, 191, 229, 241, 307, 396]);

/** No memory of the system (173), quota used up (201), too many queries (202), no thread (439), overload (745). */
const OVERLOADED: ReadonlySet<number> = new Set([173, 201, 202, 439, 745]);

/**
 * Unknown table (60) or database (81), login refused (192, 193, 194, 516), a right or a setting that the account may
 * not use (164, 497), stopping or starting (198, 209, 210, 236), read-only or not initialised (242, 415), no shard
 * (279), killed by an operator or a stop (394), no object storage (499), no Keeper (999).
 */
const UNAVAILABLE: ReadonlySet<number> = new Set([
  60, 81, 164, 192, 193, 194, 198, 209, 210, 236, 242, 279, 394, 415, 497, 499, 516, 999,
]);

/**
 * Returns the outcome of a query that failed without being cancelled. An error that came neither from ClickHouse nor
 * from the connection to it is a fault of this service.
 */
export function outcomeOf(error: unknown): Exclude<QueryOutcome, 'ok' | 'cancelled'> {
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

/** Time: too slow (160), or over (159). */
const OUT_OF_TIME: ReadonlySet<number> = new Set([159, 160]);

/** Whether a query failed for its time alone: it may succeed over a shorter range, as `query_too_expensive` says. */
export function isOutOfTime(error: unknown): boolean {
  return isTimeout(error) || (error instanceof ClickHouseException && OUT_OF_TIME.has(error.code));
}

/** Whether a query failed for what it kept in memory, by its bytes or its groups (158): it may succeed if it keeps less. */
export function isOutOfSpace(error: unknown): boolean {
  return isOutOfMemory(error) || (error instanceof ClickHouseException && error.code === 158);
}

/** Whether a query needed more memory than it may have, rather than the server more than it has. */
export function isOutOfMemory(error: unknown): boolean {
  return error instanceof ClickHouseException && error.code === 241 && !isServerOutOfMemory(error);
}

/** Returns the error response to a request whose query failed. It reveals neither the query nor the server. */
export function queryProblem(outcome: Exclude<QueryOutcome, 'ok'>, cause: unknown): Problem {
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
      return new Problem('store_unavailable', 'The event store cannot be reached; try again.', {
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
  return code === 241 && /\(total\)/.test(message);
}
