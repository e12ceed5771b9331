import { ClickHouseError } from '@clickhouse/client';
import { Problem } from '@sluice/shared/http/problem';
import { SlotRefused } from './query-slots.ts';

/** Seconds after which a client is asked to try again when ClickHouse does not answer. */
const RETRY_AFTER_SECONDS = 2;

/**
 * Budgets: rows to read (158), time (159, 160), set size (191), memory (241), bytes to read (307), result size (396),
 * and of the query itself (168, 229).
 */
const TOO_EXPENSIVE = new Set(['158', '159', '160', '168', '191', '229', '241', '307', '396']);

/** Too many queries (202), no thread (439), overload (745): the server has too much to do. */
const OVERLOADED = new Set(['202', '439', '745']);

/**
 * Unknown table (60) or database (81), login refused (192, 193, 194, 516), gone or starting (198, 209, 210, 236),
 * read-only or not initialised (242, 415), the schema is being changed (47, 16, 10).
 */
const UNAVAILABLE = new Set(['60', '81', '192', '193', '194', '516', '198', '209', '210', '236', '242', '415']);

/** How a query ended. `cancelled`: the client went away. */
export type Outcome = 'ok' | 'too_expensive' | 'overloaded' | 'unavailable' | 'cancelled' | 'failed';

/** What an error of a query that nobody cancelled means. */
export function outcomeOf(error: unknown): Exclude<Outcome, 'ok' | 'cancelled'> {
  if (error instanceof SlotRefused) return 'overloaded';
  // Whatever is not ClickHouse's own answer came from the way there: refused, reset, timed out.
  if (!(error instanceof ClickHouseError)) return 'unavailable';
  if (isServerOutOfMemory(error)) return 'overloaded';
  if (TOO_EXPENSIVE.has(error.code)) return 'too_expensive';
  if (OVERLOADED.has(error.code)) return 'overloaded';
  return UNAVAILABLE.has(error.code) ? 'unavailable' : 'failed';
}

/** The answer to a request whose query failed; it never says what was asked of whom. */
export function storeProblem(outcome: Exclude<Outcome, 'ok'>, cause: unknown): Problem {
  switch (outcome) {
    case 'too_expensive':
      return new Problem(
        'query_too_expensive',
        'The query takes more time or memory, or reads more, than it may; narrow it down.',
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

/** The whole server's memory, not this query's budget, was used up. */
function isServerOutOfMemory({ code, message }: ClickHouseError): boolean {
  return code === '241' && /\(total\)/.test(message);
}
