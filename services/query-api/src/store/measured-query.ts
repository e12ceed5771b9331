import { Problem } from '@sluice/shared/http/problem';
import type { QueryKind, QueryMetrics, QueryOutcome } from '../metrics.ts';
import type { QueryOptions } from './query.ts';
import { isTimeout, outcomeOf, queryProblem } from './query-error.ts';

/**
 * Measures how long a query takes and how it ends, and turns its failure into a problem.
 *
 * @throws {Problem}
 */
export async function* measured<Item>(
  metrics: QueryMetrics,
  query: QueryOptions,
  items: AsyncIterable<Item>,
): AsyncGenerator<Item, void, undefined> {
  const settle = startTimer(metrics, query.kind);
  const cancel = () => settle('cancelled');
  // The reader may never request another batch once its client is gone.
  query.signal?.addEventListener('abort', cancel);
  // Holds also when the reader stops before the end.
  let outcome: QueryOutcome = 'cancelled';
  try {
    yield* items;
    outcome = 'ok';
  } catch (error) {
    const failure = query.signal?.aborted ? 'cancelled' : failureOf(error, query);
    outcome = failure !== 'cancelled' && isProblemOfSql(error) ? 'invalid' : failure;
    // A problem is that of the query for what is hidden, or of the client's SQL.
    throw error instanceof Problem ? error : queryProblem(failure, error);
  } finally {
    query.signal?.removeEventListener('abort', cancel);
    settle(outcome);
  }
}

/** Returns how a query failed. Of a problem the cause decides. */
function failureOf(error: unknown, { graceMs }: QueryOptions): ReturnType<typeof outcomeOf> {
  if (error instanceof Problem) return outcomeOf(error.cause);
  return graceMs === 0 && isTimeout(error) ? 'too_expensive' : outcomeOf(error);
}

/** Starts the clock of a query. The first call of the returned function stops it. */
function startTimer({ queryDurationSeconds }: QueryMetrics, kind: QueryKind): (outcome: QueryOutcome) => void {
  const startedAt = performance.now();
  let settled = false;
  return (outcome) => {
    if (!settled) queryDurationSeconds.observe({ kind, outcome }, (performance.now() - startedAt) / 1_000);
    settled = true;
  };
}

/** Whether a client sent SQL that it must not send, or where it must not send any. */
function isProblemOfSql(error: unknown): boolean {
  return error instanceof Problem && (error.code === 'invalid_sql' || error.code === 'sql_not_available');
}
