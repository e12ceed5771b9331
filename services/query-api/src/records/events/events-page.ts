import {
  type QueryContext,
  type QueryOptions,
  type QueryRunner,
  type RowBatches,
  type Sql,
  type Tables,
  TimeBudget,
} from '../../store/store.ts';
import { asEventRow, EVENT_SELECT, type EventRow, sortKeyOf } from './event-record.ts';
import type { PageRequest } from './events-parameters.ts';
import { type PageSlice, pageQuery, wholePage } from './events-query.ts';
import { type Density, type PageDensities, windowEnds } from './page-windows.ts';

export interface PageReaderOptions {
  readonly queryRunner: Pick<QueryRunner, 'rows'>;
  readonly densities: PageDensities;
  /** How long a page may take in all. */
  readonly timeoutMs: number;
  /** Returns the time in milliseconds since 1970. Default: that of the system. */
  readonly now?: () => number;
  /** What its queries have besides a page: by default, they are those of `GET /events`. */
  readonly query?: Partial<QueryOptions>;
}

/** Reads pages of events, in windows of time (see page-windows.ts). */
export class PageReader {
  readonly #queryRunner: Pick<QueryRunner, 'rows'>;
  readonly #densities: PageDensities;
  readonly #timeoutMs: number;
  readonly #now: () => number;
  readonly #query: Partial<QueryOptions>;

  constructor({ queryRunner, densities, timeoutMs, now = Date.now, query = {} }: PageReaderOptions) {
    this.#queryRunner = queryRunner;
    this.#densities = densities;
    this.#timeoutMs = timeoutMs;
    this.#now = now;
    this.#query = query;
  }

  /**
   * Returns the rows of a page, and one more if there is a next page; throws as {@link QueryRunner.rows} does.
   *
   * @param select what to read of an event: {@link EVENT_SELECT}, or {@link selectOf} some fields and the timestamp
   */
  async *read(request: PageRequest, context: QueryContext, select = EVENT_SELECT): RowBatches {
    const seen = new SeenRows();
    for await (const batch of this.#readSlices(request, context, select)) {
      seen.add(batch.map(asEventRow));
      yield batch;
    }
    this.#learn(request, seen);
  }

  /** Reads slices until the page is full. A slice that `offset` skips as a whole is read again with the next one. */
  async *#readSlices(request: PageRequest, context: QueryContext, select: string): RowBatches {
    const options = { budget: new TimeBudget(this.#timeoutMs), ...this.#query, ...context };
    let { rows, offset } = wholePage(request);
    let undecided: PageSlice | undefined;
    for (const slice of this.#slicesOf(request)) {
      const range = undecided ? spanning(undecided, slice) : slice;
      let found = 0;
      const part = { ...range, rows, offset };
      const hiding = (tables: Tables, hidden: Sql | undefined) => pageQuery(tables, request, hidden, part, select);
      for await (const batch of this.#queryRunner.rows({ kind: 'events_page', ...options, hiding })) {
        found += batch.length;
        yield batch;
      }
      undecided = found === 0 && offset > 0 ? range : undefined;
      if (!undecided) offset = 0;
      rows -= found;
      if (rows === 0) return;
    }
  }

  #slicesOf(request: PageRequest): readonly PageSlice[] {
    const known = { list: this.#densities.of(request.listKey), workspace: this.#densities.of(request.workspace) };
    const ends = windowEnds(request, known, this.#now());
    const descending = request.order.direction === 'DESC';
    const slices: PageSlice[] = [];
    let rest = wholePage(request);
    for (const end of ends) {
      slices.push({ ...rest, ...(descending ? { startMs: end } : { endMs: end }), isWindow: true });
      // Beyond the first window every event comes after the cursor.
      rest = { ...rest, after: undefined, ...(descending ? { endMs: end - 1 } : { startMs: end + 1 }) };
    }
    return [...slices, rest];
  }

  /** A page with bounds of its own says nothing of where the list begins. */
  #learn(request: PageRequest, { first, last, count }: SeenRows): void {
    const { order, after, startMs, endMs, limit, offset } = request;
    if (order.field !== 'timestamp') return;
    const descending = order.direction === 'DESC';
    const unbounded = !after && offset === 0 && (descending ? endMs : startMs) === undefined;
    const firstMs = first && sortKeyOf(first, 'timestamp').timestampMs;
    const lastMs = last && sortKeyOf(last, 'timestamp').timestampMs;
    const density: Density = {
      ...(unbounded && firstMs !== undefined && (descending ? { newestMs: firstMs } : { oldestMs: firstMs })),
      ...(count > limit && firstMs !== undefined && lastMs !== undefined
        ? count >= PACE_ROWS_MIN && { msPerEvent: Math.abs(lastMs - firstMs) / count }
        : unbounded && startMs === undefined && endMs === undefined && { msPerEvent: Number.POSITIVE_INFINITY }),
    };
    this.#densities.learn(request.listKey, density);
  }
}

/** Of fewer rows an average means little. */
const PACE_ROWS_MIN = 10;

class SeenRows {
  first: EventRow | undefined;
  last: EventRow | undefined;
  count = 0;

  add(rows: readonly EventRow[]): void {
    this.first ??= rows[0];
    this.last = rows.at(-1) ?? this.last;
    this.count += rows.length;
  }
}

/** The range of two slices that touch. */
function spanning(one: PageSlice, other: PageSlice): PageSlice {
  return {
    ...one,
    startMs: lower(one.startMs, other.startMs),
    endMs: higher(one.endMs, other.endMs),
    isWindow: other.isWindow ?? false,
  };
}

function lower(a: number | undefined, b: number | undefined): number | undefined {
  return a === undefined || b === undefined ? undefined : Math.min(a, b);
}

function higher(a: number | undefined, b: number | undefined): number | undefined {
  return a === undefined || b === undefined ? undefined : Math.max(a, b);
}
