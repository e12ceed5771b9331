import { Problem } from '@sluice/shared/http/problem';
import { LRUCache } from 'lru-cache';
import type { QueryContext, QueryRunner } from '../clickhouse/query-runner.ts';
import { SlotRefused } from '../clickhouse/query-slots.ts';
import type { Sql } from '../clickhouse/sql.ts';
import type { TimeRange } from '../filters/filter-sql.ts';
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

/** How many lists are remembered whose count took too long. */
const SLOW_LISTS_MAX = 10_000;

/**
 * A list whose count took too long is not counted again for this many times the budget. So the counts of a list take no
 * more than a thirtieth of the time, however often it is requested.
 */
const SLOW_LIST_PAUSE = 30;

/** Counts the events of requests. */
export class EventCounter {
  readonly #queryRunner: Pick<QueryRunner, 'all'>;
  readonly #timeoutMs: number;
  /** The time ranges whose exact counts took too long, by list. */
  readonly #slow: LRUCache<string, TimeRange>;

  /** @param timeoutMs how long a count may take */
  constructor(queryRunner: Pick<QueryRunner, 'all'>, timeoutMs: number) {
    this.#queryRunner = queryRunner;
    this.#timeoutMs = timeoutMs;
    this.#slow = new LRUCache({ max: SLOW_LISTS_MAX, ttl: SLOW_LIST_PAUSE * timeoutMs });
  }

  /**
   * Counts the events of a request. The total is `null` if that took too long, now or a short time ago.
   *
   * @throws {Problem} as {@link QueryRunner.rows} does, except `query_too_expensive`
   */
  async count(request: EventsRequest, hidden: Sql | undefined, context: QueryContext): Promise<Total> {
    const isCapped = request.total === 'capped';
    const slow = isCapped ? undefined : this.#slow.get(request.listKey);
    if (slow && contains(request, slow)) return { value: null };
    const sql = isCapped ? cappedCountQuery(request, hidden) : countQuery(request, hidden);
    try {
      const query = { kind: 'events_count', timeoutMs: this.#timeoutMs, graceMs: 0, ...context, ...sql } as const;
      const [row] = await this.#queryRunner.all(query);
      const value = row?.[0] as number;
      return isCapped ? capped(value) : { value };
    } catch (error) {
      if (!(error instanceof Problem && error.code === 'query_too_expensive')) throw error;
      // A count that only waited says nothing of its list.
      if (!isCapped && !(error.cause instanceof SlotRefused))
        this.#slow.set(request.listKey, { startMs: request.startMs, endMs: request.endMs });
      return { value: null };
    }
  }
}

function contains(range: TimeRange, other: TimeRange): boolean {
  const { startMs = Number.NEGATIVE_INFINITY, endMs = Number.POSITIVE_INFINITY } = range;
  const { startMs: otherStart = Number.NEGATIVE_INFINITY, endMs: otherEnd = Number.POSITIVE_INFINITY } = other;
  return startMs <= otherStart && otherEnd <= endMs;
}

function capped(count: number): Total {
  return { value: Math.min(count, TOTAL_CAP), isLowerBound: count > TOTAL_CAP };
}
