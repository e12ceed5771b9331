import { ClickHouseError } from '@clickhouse/client';
import { Problem } from '@sluice/shared/http/problem';
import type { QueryOutcome } from '../metrics.ts';
import { SlotRefused } from './query-slots.ts';

/** The `Retry-After` of a response while ClickHouse is unavailable or busy. */
const RETRY_AFTER_SECONDS = 2;

/**
 * Budgets: rows to read (158), time (159, 160), set size (191), memory (241), bytes to read (307), result size (396),
 * and the length and depth of the query itself (168, 229).
 */
const TOO_EXPENSIVE = new Set(['158', '159', '160', '168', '191', '229', '241', '307', '396']);

/** Too many queries (202), no thread (439), overload (745). */
const OVERLOADED = new Set(['202', '439', '745']);

/**
 * Unknown table (60) or database (81), login refused (192, 193, 194, 516), stopping or starting (198, 209, 210, 236),
 * read-only or not initialised (242, 415), another shard away (279).
 */
const UNAVAILABLE = new Set(['60', '81', '192', '193', '194', '516', '198', '209', '210', '236', '242', '415', '279']);

/** Returns the outcome of a query that failed without being cancelled. */
export function outcomeOf(error: unknown): Exclude<QueryOutcome, 'ok' | 'cancelled'> {
  if (error instanceof SlotRefused) return 'overloaded';
  // Any other error came from the connection: refused, reset, timed out.
  if (!(error instanceof ClickHouseError)) return 'unavailable';
  if (isServerOutOfMemory(error)) return 'overloaded';
  if (TOO_EXPENSIVE.has(error.code)) return 'too_expensive';
  if (OVERLOADED.has(error.code)) return 'overloaded';
  return UNAVAILABLE.has(error.code) ? 'unavailable' : 'failed';
}

/** Returns the error response to a request whose query failed. It reveals neither the query nor the server. */
export function queryProblem(outcome: Exclude<QueryOutcome, 'ok'>, cause: unknown): Problem {
  switch (outcome) {
    case 'too_expensive':
      return new Problem(
        'query_too_expensive',
        'The query needs more time or memory, or reads more, than its budget allows; narrow it down, by dates first.',
        { cause },
      );
    case 'overloaded':
      return new Problem('overloaded', 'The service is busy; try again.', { retryAfter: RETRY_AFTER_SECONDS, cause });
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

/** Whether the memory of the whole server was used up, rather than the budget of this query. */
function isServerOutOfMemory({ code, message }: ClickHouseError): boolean {
  return code === '241' && /\(total\)/.test(message);
}
