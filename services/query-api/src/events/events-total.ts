import { Problem } from '@sluice/shared/http/problem';
import type { QueryContext, QueryRunner } from '../clickhouse/query-runner.ts';
import type { Sql } from '../clickhouse/sql.ts';
import { TOTAL_CAP } from '../limits.ts';
import type { EventsRequest } from './events-parameters.ts';
import { cappedCountQuery, countQuery } from './events-query.ts';

/** The number of events on all pages of a request. */
export interface Total {
  /** `null`: not counted, or counting went over its budget. */
  readonly value: number | null;
  /** Whether there are more events than `value`; only of a request that asked for a capped total. */
  readonly isLowerBound?: boolean;
}

/**
 * Returns the total of a request that need not be counted: `undefined` when it must.
 *
 * @param page how many records it has, and whether no page comes after it
 */
export function totalOfPage(
  { total, after, offset }: EventsRequest,
  page: { readonly count: number; readonly last: boolean },
): Total | undefined {
  if (total === 'none') return { value: null };
  // An empty page may begin beyond the last event. A page behind a cursor does not know how many came before.
  if (!page.last || after || (page.count === 0 && offset > 0)) return undefined;
  const value = offset + page.count;
  return total === 'exact' ? { value } : capped(value);
}

/**
 * Counts the events of a request.
 *
 * @throws {Problem} as {@link QueryRunner.rows} does, except `query_too_expensive`: then the total is `null`
 */
export async function countTotal(
  queryRunner: Pick<QueryRunner, 'all'>,
  request: EventsRequest,
  hidden: Sql | undefined,
  timeoutMs: number,
  context: QueryContext,
): Promise<Total> {
  const isCapped = request.total === 'capped';
  const sql = isCapped ? cappedCountQuery(request, hidden) : countQuery(request, hidden);
  try {
    const [row] = await queryRunner.all({ kind: 'events_count', timeoutMs, graceMs: 0, ...context, ...sql });
    const value = row?.[0] as number;
    return isCapped ? capped(value) : { value };
  } catch (error) {
    if (error instanceof Problem && error.code === 'query_too_expensive') return { value: null };
    throw error;
  }
}

function capped(count: number): Total {
  return { value: Math.min(count, TOTAL_CAP), isLowerBound: count > TOTAL_CAP };
}
