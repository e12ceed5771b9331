import {
  type QueryContext,
  type QueryOptions,
  type QueryRunner,
  type Row,
  type RowBatches,
  type Sql,
  type Tables,
  TimeBudget,
} from '../../store/store.ts';
import { toPositive } from '../filters/property-filter.ts';
import { fewMatchingOwners, matchingOwners } from '../owners/matching-owners.ts';
import { isOwnerDocument, ownerOf } from '../owners/owners.ts';
import { asEventRow, EVENT_SELECT, type EventRow, sortKeyOf, textOf } from './event-record.ts';
import { isByOwners } from './event-selection.ts';
import { type FewOwners, listKeyOf, type PageRequest } from './events-parameters.ts';
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
    const options = { budget: new TimeBudget(this.#timeoutMs), ...this.#query, ...context };
    yield* this.#readList(request, options, select);
  }

  async *#readList(request: PageRequest, options: PageOptions, select: string): RowBatches {
    const seen = new SeenRows();
    for await (const batch of this.#readPage(request, options, select)) {
      seen.add(batch.map(asEventRow));
      yield batch;
    }
    this.#learn(request, seen);
  }

  async *#readPage(request: PageRequest, options: PageOptions, select: string): RowBatches {
    // Events do not say whose their visitors are.
    const isOfPersons = options.isLinked && request.properties.some(({ document }) => document === 'user.properties');
    const isLookedThrough = select === EVENT_SELECT && isOfAnyOwners(request) && !isOfPersons;
    const rest = isLookedThrough ? yield* this.#lookThrough(request, options) : request;
    const named = rest && (await this.#withFewOwners(rest, options));
    if (named) yield* this.#readSlices(named, options, select);
  }

  /**
   * Names the owners that match, where they are few: to find them by themselves costs less than a statement with their sets, once for
   * each of its windows. Returns `undefined` where nobody matches.
   */
  async #withFewOwners(request: PageRequest, options: PageOptions): Promise<PageRequest | undefined> {
    const properties: PageRequest['properties'][number][] = [];
    const owners: FewOwners[] = [];
    for (const requested of request.properties) {
      const owner = isOwnerDocument(requested.document) ? ownerOf(requested.document) : undefined;
      const isPerson = owner === 'user' && options.isLinked;
      const ids = owner && !isPerson && (await fewMatchingOwners(this.#find(options), owner, requested));
      if (owner && ids) owners.push({ owner, ids });
      else properties.push(requested);
    }
    return owners.some(({ ids }) => ids.length === 0) ? undefined : { ...request, properties, owners };
  }

  /**
   * Reads events of all owners, and keeps those whose owners match: where many match, a page costs what its events and the few
   * owners of these cost, whatever is stored. Returns what is left of the page; `undefined` when it is whole.
   */
  async *#lookThrough(
    request: PageRequest,
    options: PageOptions,
  ): AsyncGenerator<readonly Row[], PageRequest | undefined, undefined> {
    const ofAll = ofAllOwners(request);
    let rest = request;
    let looked = 0;
    let kept = 0;
    let share = this.#shareOf(request, ofAll);
    for (;;) {
      const count = Math.ceil((SPARE_EVENTS * (rest.limit + 1)) / share);
      if (looked + count > LOOKED_THROUGH_MAX) return rest;
      const { read, isCut } = await this.#readSome({ ...ofAll, after: rest.after, limit: count - 1 }, options);
      const found = (await this.#ofMatchingOwners(read, request, options)).slice(0, rest.limit + 1);
      if (found.length > 0) yield found;
      const last = read.at(-1);
      if (found.length === rest.limit + 1 || (read.length < count && !isCut) || !last) return undefined;
      rest = { ...rest, after: sortKeyOf(last, 'timestamp'), limit: rest.limit - found.length };
      if (isCut) return rest;
      looked += count;
      kept += found.length;
      share = kept / looked;
    }
  }

  /** Reads the events of a page that may be held at once: `isCut` where these are not all. */
  async #readSome(request: PageRequest, options: PageOptions) {
    const read: EventRow[] = [];
    let characters = 0;
    for await (const batch of this.#readList(request, options, EVENT_SELECT)) {
      for (const row of batch.map(asEventRow)) {
        read.push(row);
        characters += row.reduce((sum, cell) => sum + String(cell).length, 0);
      }
      if (characters > LOOKED_THROUGH_CHARACTERS_MAX) return { read, isCut: true };
    }
    return { read, isCut: false };
  }

  /** Returns how many of the events have owners that match, as far as is known. */
  #shareOf({ listKey }: PageRequest, ofAll: PageRequest): number {
    const [matching, all] = [listKey, ofAll.listKey].map((key) => this.#densities.of(key)?.msPerEvent);
    if (matching === undefined || all === undefined) return SHARE_DEFAULT;
    return matching > all ? all / matching : 1;
  }

  async #ofMatchingOwners(
    events: readonly EventRow[],
    { properties }: PageRequest,
    options: PageOptions,
  ): Promise<readonly EventRow[]> {
    const find = this.#find(options);
    let left = events;
    for (const requested of properties) {
      if (!isOwnerDocument(requested.document)) continue;
      const owner = ownerOf(requested.document);
      const idOf = (event: EventRow) => textOf(event, owner === 'user' ? 'userId' : 'groupId');
      const { filter, negated } = toPositive(requested);
      const ids = new Set(left.map(idOf).filter((id) => id !== ''));
      const matching = await matchingOwners(find, owner, filter, [...ids]);
      left = left.filter((event) => matching.has(idOf(event)) !== negated);
    }
    return left;
  }

  /** Returns what reads about some owners. */
  #find(options: PageOptions) {
    return async (statement: (tables: Tables) => Sql) => {
      const rows: Row[] = [];
      for await (const batch of this.#queryRunner.rows({ kind: 'events_page', ...options, statement }))
        rows.push(...batch);
      return rows;
    };
  }

  /** Reads slices until the page is full. A slice that `offset` skips as a whole is read again with the next one. */
  async *#readSlices(request: PageRequest, options: PageOptions, select: string): RowBatches {
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

type PageOptions = Partial<QueryOptions> & QueryContext;

/** How many more events are looked through than should be needed. */
const SPARE_EVENTS = 1.25;

/** How many events of all owners are looked through at most: more cost as much as an index or a fold of all owners. */
const LOOKED_THROUGH_MAX = 2_000;

/** How much of these is held while their owners are asked for, besides a batch of rows: other pages pass their rows on as they come. */
const LOOKED_THROUGH_CHARACTERS_MAX = 1_024 * 1_024;

/** How many of the events have owners that match, until something is known. */
const SHARE_DEFAULT = 0.5;

/** Whether events of all owners may be looked through: what is asked of these is cheap to find out of a few. */
function isOfAnyOwners({ order, offset, fields, properties }: PageRequest): boolean {
  return (
    order.field === 'timestamp' &&
    offset === 0 &&
    properties.some(({ document }) => isOwnerDocument(document)) &&
    !isByOwners({ fields, properties: [] })
  );
}

/** The same page of events of all owners. */
function ofAllOwners(request: PageRequest): PageRequest {
  const properties = request.properties.filter(({ document }) => !isOwnerDocument(document));
  return { ...request, properties, listKey: listKeyOf(request.workspace, { ...request, properties }) };
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
