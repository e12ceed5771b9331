import { Problem } from '@sluice/shared/http/problem';
import { isOutOfSpace } from '../clickhouse/query-error.ts';
import type { HidingStatement, QueryContext, QueryRunner } from '../clickhouse/query-runner.ts';
import type { QuerySettings } from '../clickhouse/query-settings.ts';
import { TimeBudget } from '../clickhouse/time-budget.ts';
import type { QueryConfig } from '../config.ts';
import { collectingSettings, reportRows } from './report-runner.ts';
import { EXACT_DISTINCT_MAX, isDistinct } from './series-measure.ts';
import type { SeriesRange, SeriesRequest } from './series-parameters.ts';
import {
  givenGroupsQuery,
  largestGroupsQuery,
  type PlaceRow,
  type SeriesPart,
  seriesQuery,
  TOTAL_PLACE,
  type Written,
} from './series-query.ts';

/** Above this number of cells, of a bucket and a group, the largest groups are found first. */
const CELLS_MAX = 200_000;

/** The share of its time that a series of several buckets has to be computed at once. The rest is for its newest buckets. */
const WHOLE_SHARE = 2 / 3;

/** The newest slice is this part of the buckets; each further one is twice as large. */
const FIRST_SLICE_SHARE = 1 / 32;

/** The numbers of one range. */
export interface SeriesNumbers {
  readonly range: SeriesRange;
  /** The first bucket that is known, as an index. Of all later ones the numbers are complete. */
  readonly from: number;
  /** Whether all buckets and totals are known. */
  readonly complete: boolean;
  /** The hash and the keys of each group, the largest first; a series without groups is one. */
  readonly groups: readonly (readonly string[])[];
  /** By place: 0 is everything, the groups follow, and then all other groups, if there are any. */
  readonly places: ReadonlyMap<number, Numbers>;
  /** Whether no distinct count is an estimate, and no number beyond the range of 64-bit floats. */
  readonly exact: boolean;
}

export interface Numbers {
  /** The value over the range; `undefined` when not all of its buckets are known. */
  readonly total: number | null | undefined;
  /** By the start of a bucket; a bucket without events is not there. */
  readonly values: ReadonlyMap<number, number | null>;
}

export interface SeriesResult {
  readonly current: SeriesNumbers;
  readonly previous: SeriesNumbers | undefined;
}

/** A way to compute a range: later ways take less memory. */
interface Way {
  readonly findsGroups: boolean;
  readonly approximate: boolean;
}

/**
 * Computes series within a budget of time for the whole request. Without enough of it, the numbers are those of the
 * newest buckets.
 */
export class SeriesReader {
  readonly #queryRunner: Pick<QueryRunner, 'all'>;
  readonly #timeoutMs: number;
  readonly #settings: QuerySettings;

  constructor(queryRunner: Pick<QueryRunner, 'all'>, config: QueryConfig) {
    this.#queryRunner = queryRunner;
    this.#timeoutMs = config.QUERY_TIMEOUT_MS;
    // A number beyond the range of 64-bit floats must not look like one that is missing.
    this.#settings = { ...collectingSettings(config), output_format_json_quote_denormals: '1' };
  }

  /** @throws {Problem} as {@link QueryRunner.rows} does; `query_too_expensive` only for other budgets than time */
  async read(request: SeriesRequest, context: QueryContext): Promise<SeriesResult> {
    const budget = new TimeBudget(this.#timeoutMs);
    const reading = new SeriesReading(request, async (hiding, { share, isFollowed, settings: more }) => {
      const settings = { ...this.#settings, ...more };
      const limits = { budget, timeoutMs: budget.leftMs(share), isFollowed, settings };
      return await reportRows(this.#queryRunner, { kind: 'series', hiding, ...context, ...limits });
    });
    const current = await reading.current();
    return { current, previous: request.previous && (await reading.given(request.previous, current.groups)) };
  }
}

/** Runs a query of the request; `undefined` when its time is up. */
type Run = (
  hiding: HidingStatement['hiding'],
  options: RunOptions & { readonly settings?: QuerySettings },
) => Promise<readonly unknown[] | undefined>;

interface RunOptions {
  /** Of the time of the request, by which the query has to be done. */
  readonly share: number;
  /** Whether a way that takes less memory follows. */
  readonly isFollowed: boolean;
}

/** One request for a series. */
class SeriesReading {
  readonly #request: SeriesRequest;
  readonly #run: Run;

  constructor(request: SeriesRequest, run: Run) {
    this.#request = request;
    this.#run = run;
  }

  /** Returns the numbers of the range, or of its newest buckets. */
  async current(): Promise<SeriesNumbers> {
    const { range } = this.#request;
    const share = range.buckets.length === 1 ? 1 : WHOLE_SHARE;
    return (await this.#numbers(range, undefined, share)) ?? (await this.#newest());
  }

  /** Returns the numbers of another range and of groups that are known. */
  async given(range: SeriesRange, groups: SeriesNumbers['groups']): Promise<SeriesNumbers> {
    return (await this.#numbers(range, groups)) ?? nothingKnown(range, groups);
  }

  /** Computes slices of the range, the newest first, until the time is up. Its groups are those of the newest slice. */
  async #newest(): Promise<SeriesNumbers> {
    const { range, groupBy } = this.#request;
    let known = nothingKnown(range, groupBy.length === 0 ? ONE_GROUP : []);
    let length = Math.ceil(range.buckets.length * FIRST_SLICE_SHARE);
    while (known.from > 0) {
      const from = Math.max(0, known.from - length);
      const groups = known.from === range.buckets.length ? undefined : known.groups;
      const slice = await this.#numbers(sliceOf(range, from, known.from), groups);
      if (!slice) break;
      known = withOlder(known, slice, from);
      length *= 2;
    }
    return known;
  }

  /**
   * Computes a range; `undefined` when the time is up.
   *
   * @param groups those to compute; default: the largest
   * @param share of the time of the request by which it has to be done
   */
  async #numbers(range: SeriesRange, groups?: SeriesNumbers['groups'], share = 1): Promise<SeriesNumbers | undefined> {
    const ways = this.#ways(groups !== undefined);
    for (const [index, { findsGroups, approximate }] of ways.entries()) {
      const part = { request: this.#request, range, approximate };
      const options = { share, isFollowed: index < ways.length - 1 };
      try {
        const rows = await (findsGroups ? this.#once(part, options) : this.#givenOrFound(part, groups, options));
        return rows && numbersOf(part, rows.places, rows.groups);
      } catch (error) {
        if (!options.isFollowed || !(error instanceof Problem && isOutOfSpace(error.cause))) throw error;
      }
    }
    throw new Error('there is always a last way');
  }

  #ways(areGroupsGiven: boolean): readonly Way[] {
    const { groupBy, measure } = this.#request;
    const isGrouped = groupBy.length > 0;
    const estimates = isDistinct(measure) ? [{ findsGroups: !isGrouped, approximate: true }] : [];
    const exact = { findsGroups: !isGrouped, approximate: false };
    return isGrouped && !areGroupsGiven
      ? [{ findsGroups: true, approximate: false }, exact, ...estimates]
      : [exact, ...estimates];
  }

  async #once(part: SeriesPart, options: RunOptions): Promise<Found | undefined> {
    const settings = { max_rows_to_group_by: String(CELLS_MAX) };
    const places = await this.#places((hidden) => seriesQuery({ ...part, hidden }), { ...options, settings });
    return places && { places };
  }

  async #givenOrFound(part: SeriesPart, given: Groups | undefined, options: RunOptions): Promise<Found | undefined> {
    const groups = given ?? (await this.#largest(part, options));
    const hashes = groups?.map(([hash = '']) => hash);
    const places = hashes && (await this.#places((hidden) => givenGroupsQuery({ ...part, hidden }, hashes), options));
    return places && groups && { places, groups };
  }

  async #largest(part: SeriesPart, options: RunOptions): Promise<Groups | undefined> {
    const rows = await this.#run((hidden) => largestGroupsQuery({ ...part, hidden }), options);
    return (rows as readonly [readonly string[]][] | undefined)?.map(([group]) => group);
  }

  async #places(...query: Parameters<Run>): Promise<readonly PlaceRow[] | undefined> {
    return (await this.#run(...query)) as readonly PlaceRow[] | undefined;
  }
}

type Groups = SeriesNumbers['groups'];

/** Without `groupBy`, all events are one group that has no keys. */
const ONE_GROUP: Groups = [[]];

interface Found {
  readonly places: readonly PlaceRow[];
  readonly groups?: Groups;
}

function numbersOf(part: SeriesPart, rows: readonly PlaceRow[], given: Groups | undefined): SeriesNumbers {
  const places = new Map(
    rows.map(([place, , total, cells]) => {
      const values = new Map(cells.map(([start, value]) => [start, numberOf(value)]));
      return [place, { total: numberOf(total), values }];
    }),
  );
  const { approximate, range, request } = part;
  const isEstimate = (value: Written) =>
    typeof value === 'string' || (approximate && value !== null && value > EXACT_DISTINCT_MAX);
  return {
    range,
    from: 0,
    complete: true,
    groups: given ?? (request.groupBy.length === 0 ? ONE_GROUP : groupsOf(rows, request.groups)),
    places,
    exact: !rows.some(([, , total, cells]) => isEstimate(total) || cells.some(([, value]) => isEstimate(value))),
  };
}

function numberOf(value: Written): number | null {
  return typeof value === 'string' ? null : value;
}

function groupsOf(rows: readonly PlaceRow[], count: number): Groups {
  return rows
    .filter(([place]) => place > TOTAL_PLACE && place <= count)
    .sort(([one], [other]) => one - other)
    .map(([, group]) => group);
}

function nothingKnown(range: SeriesRange, groups: Groups): SeriesNumbers {
  return { range, from: range.buckets.length, complete: false, groups, places: new Map(), exact: true };
}

function sliceOf({ startMs, endMs, buckets }: SeriesRange, from: number, to: number): SeriesRange {
  const [first = startMs, next] = [buckets[from], buckets[to]];
  return {
    startMs: Math.max(startMs, first),
    endMs: next === undefined ? endMs : next - 1,
    buckets: buckets.slice(from, to),
  };
}

function withOlder(known: SeriesNumbers, slice: SeriesNumbers, from: number): SeriesNumbers {
  const places = new Map<number, Numbers>();
  for (const place of new Set([...known.places.keys(), ...slice.places.keys()])) {
    const values = [slice, known].flatMap(({ places }) => [...(places.get(place)?.values ?? [])]);
    places.set(place, { total: undefined, values: new Map(values) });
  }
  return { range: known.range, from, complete: false, groups: slice.groups, places, exact: known.exact && slice.exact };
}
