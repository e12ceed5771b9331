import { Problem } from '@sluice/shared/http/problem';
import { LRUCache } from 'lru-cache';
import { TOTAL_CAP } from '../../http/http.ts';
import {
  COUNT_SETTINGS,
  isLateForSlot,
  type QueryContext,
  type QueryRunner,
  type Sql,
  type Tables,
} from '../../store/store.ts';
import type { TimeRange } from '../filters/filter-sql.ts';
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
 * A list whose count took too long is not counted again for this many times the budget, and for a minute at most. So the
 * counts of a list that is requested all the time take a thirtieth of the time.
 */
const SLOW_LIST_PAUSE = 30;
const SLOW_LIST_PAUSE_MS_MAX = 60_000;

/** How much shorter than a slow time range another one may be, to count as the same: "the last seven days" moves on. */
const SLACK = 0.1;

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
    this.#slow = new LRUCache({
      max: SLOW_LISTS_MAX,
      ttl: Math.min(SLOW_LIST_PAUSE * timeoutMs, SLOW_LIST_PAUSE_MS_MAX),
    });
  }

  /**
   * Counts the events of a request. The total is `null` if that took too long, now or a short time ago.
   *
   * @throws {Problem} as {@link QueryRunner.rows} does, except `query_too_expensive`
   */
  async count(request: EventsRequest, context: QueryContext): Promise<Total> {
    const isCapped = request.total === 'capped';
    const slow = isCapped ? undefined : this.#slow.get(request.listKey);
    if (slow && covers(request, slow)) return { value: null };
    const query = {
      hiding: (tables: Tables, hidden: Sql | undefined) =>
        (isCapped ? cappedCountQuery : countQuery)(tables, request, hidden),
      settings: isCapped ? {} : COUNT_SETTINGS,
    };
    try {
      const budget = { timeoutMs: this.#timeoutMs, graceMs: 0 };
      const [row] = await this.#queryRunner.all({ kind: 'events_count', ...budget, ...context, ...query });
      const value = row?.[0] as number;
      return isCapped ? capped(value) : { value };
    } catch (error) {
      // A count that only waited says nothing of its list.
      if (error instanceof Problem && isLateForSlot(error.cause)) return { value: null };
      if (!(error instanceof Problem && error.code === 'query_too_expensive')) throw error;
      if (!isCapped) this.#slow.set(request.listKey, { startMs: request.startMs, endMs: request.endMs });
      return { value: null };
    }
  }
}

/** Whether a time range includes nearly all of another. */
function covers({ startMs, endMs }: TimeRange, slow: TimeRange): boolean {
  const nowMs = Date.now();
  const slackMs = slow.startMs === undefined ? 0 : SLACK * Math.max(0, (slow.endMs ?? nowMs) - slow.startMs);
  const startsBefore = startMs === undefined || (slow.startMs !== undefined && startMs <= slow.startMs + slackMs);
  const endsAfter = endMs === undefined || endMs >= (slow.endMs ?? nowMs) - slackMs;
  return startsBefore && endsAfter;
}

function capped(count: number): Total {
  return { value: Math.min(count, TOTAL_CAP), isLowerBound: count > TOTAL_CAP };
}
