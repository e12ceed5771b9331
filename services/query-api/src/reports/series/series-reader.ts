import type { Reservation } from '@sluice/shared/http/memory-budget';
import { Problem } from '@sluice/shared/http/problem';
import type { QueryConfig } from '../../config.ts';
import { reserve } from '../../http/http.ts';
import { isByOwners } from '../../records/records.ts';
import {
  type HidingStatement,
  isOutOfSpace,
  type QueryContext,
  type QueryRunner,
  type QuerySettings,
  type Row,
  TimeBudget,
} from '../../store/store.ts';
import { propertiesRead } from '../group-key.ts';
import { collectingSettings, readReport } from '../report-runner.ts';
import { emptyValue, isDistinct, type SeriesRange, type SeriesRequest } from './series-parameters.ts';
import {
  EXACT_DISTINCT_MAX,
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
  /** Whether it is known that the range has no events. */
  readonly isEmpty: boolean;
  /** The hash and the keys of each group, the largest first; a series without groups is one. */
  readonly groups: readonly (readonly string[])[];
  /** By place: 0 is everything, the groups follow, and then all other groups, if there are any. */
  readonly places: ReadonlyMap<number, Numbers>;
  /** Whether no distinct count is an estimate, and no number beyond the range of 64-bit floats. */
  readonly exact: boolean;
}

/** Returns the number of a place over the whole range; default: of everything. `null` when there is none, or it is not known. */
export function totalOf(
  { measure }: SeriesRequest,
  { places, complete }: SeriesNumbers,
  place = TOTAL_PLACE,
): number | null {
  const line = places.get(place);
  const total = line ? line.total : complete ? emptyValue(measure) : undefined;
  return total ?? null;
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
  readonly #queryRunner: Pick<QueryRunner, 'rows'>;
  readonly #timeoutMs: number;
  readonly #settings: QuerySettings;

  constructor(queryRunner: Pick<QueryRunner, 'rows'>, config: QueryConfig) {
    this.#queryRunner = queryRunner;
    this.#timeoutMs = config.QUERY_TIMEOUT_MS;
    // A number beyond the range of 64-bit floats must not look like one that is missing.
    this.#settings = { ...collectingSettings(config), output_format_json_quote_denormals: '1' };
  }

  /** @throws {Problem} as {@link QueryRunner.rows} does; `query_too_expensive` only for other budgets than time */
  async read(request: SeriesRequest, context: QueryContext): Promise<SeriesResult> {
    const budget = new TimeBudget(this.#timeoutMs);
    const { selection, groupBy, measure } = request;
    const properties = propertiesRead(selection, groupBy, 'property' in measure ? [measure.property] : []);
    const run: Run = async (hiding, { share, isFollowed, settings: more }, read) => {
      const settings = { ...this.#settings, ...more };
      const limits = { budget, timeoutMs: budget.leftMs(share), isFollowed, settings, properties };
      return await readReport(this.#queryRunner, { kind: 'series', hiding, ...context, ...limits }, read);
    };
    const reading = new SeriesReading(request, run, context.memory);
    const current = await reading.current();
    return { current, previous: request.previous && (await reading.given(request.previous, current.groups)) };
  }
}

/** Runs a query of the request, and reads its rows; returns whether its time was enough. */
type Run = (
  hiding: HidingStatement['hiding'],
  options: RunOptions & { readonly settings?: QuerySettings },
  read: (row: Row) => void,
) => Promise<boolean>;

type RunArguments = [hiding: Parameters<Run>[0], options: Parameters<Run>[1]];

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
  readonly #memory: Reservation | undefined;

  constructor(request: SeriesRequest, run: Run, memory: Reservation | undefined) {
    this.#request = request;
    this.#run = run;
    this.#memory = memory;
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
      known = withOlder(this.#request, known, slice, from);
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
        const found = await (findsGroups ? this.#once(part, options) : this.#givenOrFound(part, groups, options));
        return found && numbersOf(part, found);
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
    // Where owners are folded, they are groups of the same query, and may be more: then only memory limits the cells.
    const settings = readsOwners(part.request) ? {} : { max_rows_to_group_by: String(CELLS_MAX) };
    const lines = await this.#lines(part, (tables, hidden) => seriesQuery({ ...part, tables, hidden }), {
      ...options,
      settings,
    });
    return lines && { lines };
  }

  async #givenOrFound(part: SeriesPart, given: Groups | undefined, options: RunOptions): Promise<Found | undefined> {
    const groups = given ?? (await this.#largest(part, options));
    const hashes = groups?.map(([hash = '']) => hash);
    const lines =
      hashes &&
      (await this.#lines(part, (tables, hidden) => givenGroupsQuery({ ...part, tables, hidden }, hashes), options));
    return lines && groups && { lines, groups };
  }

  async #largest(part: SeriesPart, options: RunOptions): Promise<Groups | undefined> {
    const groups: (readonly string[])[] = [];
    const isWhole = await this.#run(
      (tables, hidden) => largestGroupsQuery({ ...part, tables, hidden }),
      options,
      ([group]) => {
        groups.push(group as readonly string[]);
      },
    );
    return isWhole ? groups : undefined;
  }

  /** Reads the lines of a part. What a query that failed has left is released. */
  async #lines(part: SeriesPart, ...[hiding, options]: RunArguments): Promise<SeriesLines | undefined> {
    const memory = this.#memory?.part();
    let isWhole = false;
    try {
      const lines = new SeriesLines(part, memory);
      isWhole = await this.#run(hiding, options, (row) => lines.add(row as unknown as PlaceRow));
      return isWhole ? lines : undefined;
    } finally {
      if (!isWhole) memory?.release();
    }
  }
}

/** Whether a series depends on what is known of users or organizations. */
function readsOwners({ selection, groupBy }: SeriesRequest): boolean {
  return isByOwners(selection) || groupBy.some((key) => !('field' in key) && key.owner !== undefined);
}

type Groups = SeriesNumbers['groups'];

/** Without `groupBy`, all events are one group that has no keys. */
const ONE_GROUP: Groups = [[]];

interface Found {
  readonly lines: SeriesLines;
  readonly groups?: Groups;
}

function numbersOf({ range, request }: SeriesPart, { lines, groups }: Found): SeriesNumbers {
  const { places, isEmpty, exact } = lines;
  const found = () => (request.groupBy.length === 0 ? ONE_GROUP : groupsOf(lines, request.groups));
  return { range, from: 0, complete: true, isEmpty, groups: groups ?? found(), places, exact };
}

function groupsOf({ places, groups }: SeriesLines, count: number): Groups {
  return [...places.keys()]
    .filter((place) => place > TOTAL_PLACE && place <= count)
    .sort((one, other) => one - other)
    .map((place) => groups.get(place) ?? []);
}

function nothingKnown(range: SeriesRange, groups: Groups): SeriesNumbers {
  const from = range.buckets.length;
  return { range, from, complete: false, isEmpty: false, groups, places: new Map(), exact: true };
}

function sliceOf({ startMs, endMs, buckets }: SeriesRange, from: number, to: number): SeriesRange {
  const [first = startMs, next] = [buckets[from], buckets[to]];
  return {
    startMs: Math.max(startMs, first),
    endMs: next === undefined ? endMs : next - 1,
    buckets: buckets.slice(from, to),
  };
}

function withOlder(request: SeriesRequest, known: SeriesNumbers, slice: SeriesNumbers, from: number): SeriesNumbers {
  const places = new Map<number, Numbers>();
  for (const place of new Set([...known.places.keys(), ...slice.places.keys()])) {
    const values = emptyValues({ request }, known.range.buckets.length - from);
    values.set(slice.places.get(place)?.values ?? []);
    values.set(known.places.get(place)?.values ?? [], slice.range.buckets.length);
    places.set(place, { total: undefined, values });
  }
  const { groups, exact } = slice;
  return { ...known, from, groups, places, exact: known.exact && exact };
}

/** The numbers of one place: of everything together, of a group, or of all other groups. */
export interface Numbers {
  /** The value over the range; `undefined` when not all of its buckets are known. */
  readonly total: number | null | undefined;
  /** One for each bucket; NaN where there is none. */
  readonly values: Float64Array;
}

/** Returns the values of buckets without events. */
export function emptyValues({ request }: Pick<SeriesPart, 'request'>, buckets: number): Float64Array {
  return new Float64Array(buckets).fill(emptyValue(request.measure) ?? Number.NaN);
}

/** Collects the rows of a part, in a tenth of the memory that they take as arrays of arrays. */
export class SeriesLines {
  readonly places = new Map<number, Numbers>();
  /** The hash and the keys of each place that has some. */
  readonly groups = new Map<number, readonly string[]>();
  /** Whether no bucket has an event. */
  isEmpty = true;
  /** Whether no number is an estimate, or beyond the range of 64-bit floats. */
  exact = true;
  readonly #part: SeriesPart;
  readonly #memory: Reservation | undefined;
  /** By the start of a bucket. */
  readonly #indexes: ReadonlyMap<number, number>;

  constructor(part: SeriesPart, memory: Reservation | undefined) {
    this.#part = part;
    this.#memory = memory;
    this.#indexes = new Map(part.range.buckets.map((start, index) => [start, index]));
  }

  /** @throws {Problem} `overloaded` */
  add([place, group, total, cells]: PlaceRow): void {
    const buckets = this.#part.range.buckets.length;
    const characters = group.reduce((sum, key) => sum + key.length, 0);
    reserve(this.#memory, buckets * Float64Array.BYTES_PER_ELEMENT + 2 * characters);
    const values = emptyValues(this.#part, buckets);
    if (cells.length > 0) this.isEmpty = false;
    for (const [start, value] of cells)
      values[this.#indexes.get(start) as number] = this.#numberOf(value) ?? Number.NaN;
    this.places.set(place, { total: this.#numberOf(total), values });
    if (group.length > 0) this.groups.set(place, group);
  }

  #numberOf(value: Written): number | null {
    const isEstimate = this.#part.approximate && value !== null && Number(value) > EXACT_DISTINCT_MAX;
    if (typeof value === 'string' || isEstimate) this.exact = false;
    return typeof value === 'string' ? null : value;
  }
}
