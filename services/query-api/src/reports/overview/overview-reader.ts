import { Problem } from '@sluice/shared/http/problem';
import { parseExactJson } from '@sluice/shared/text/json';
import type { QueryConfig } from '../../config.ts';
import { isoTime } from '../../records/records.ts';
import { type HidingStatement, type QueryContext, type QueryRunner, TimeBudget } from '../../store/store.ts';
import { bucketStarts, bucketStartsBefore } from '../calendar.ts';
import { collectingSettings, reportRows } from '../report-runner.ts';
import type { Measure, SeriesRange, SeriesRequest } from '../series/series-parameters.ts';
import { SeriesReader } from '../series/series-reader.ts';
import {
  type Compared,
  type NameRow,
  namesQuery,
  OVERVIEW_DAYS,
  type Span,
  TOP_EVENTS_MAX,
  UNUSUAL_DEVIATIONS,
  type ValueRow,
  valuesQuery,
  WEEK_DAYS,
  WEEKS_MIN,
} from './overview-query.ts';

/** How many events of a day are looked at for values of properties, about. */
export const SAMPLED_OF_DAY = 2_000;

/** Where not all events are looked at, those of so many parts of each day are. */
const PARTS_OF_DAY = 4;

/** A number of yesterday, or of the week that ends with it, beside that of the time before. */
export interface OverviewFigure {
  readonly measure: string;
  /** How many days the number is of. */
  readonly days: number;
  /** `null`, as each of `values`, when it was not computed in time. */
  readonly value: number | null;
  /** The same a week before. */
  readonly previous: number | null;
  readonly values: readonly (number | null)[];
  /** Of today until now; `null` also of several days. */
  readonly today: number | null;
}

/** What was expected of a number; `to` is included. */
export interface Expected {
  readonly from: number;
  readonly to: number;
}

/** An event and its counts. */
export interface TopEvent {
  readonly event: string;
  readonly count: number;
  /** `null` as long as there is nothing to compare with. */
  readonly expected: Expected | null;
  readonly values: readonly number[];
}

/** What was unusual yesterday: the count of an event, or how often an event has a value of a property. */
export interface OverviewChange {
  readonly event: string;
  readonly property: string | null;
  readonly value: unknown;
  readonly count: number;
  readonly expected: Expected;
  readonly deviation: number;
  readonly values: readonly number[];
  /** Of a value, the events of this name that were looked at. */
  readonly of: readonly number[] | null;
}

export interface Overview {
  readonly timeZone: string;
  readonly startDate: string;
  readonly endDate: string;
  readonly days: readonly string[];
  readonly weeks: number;
  readonly figures: readonly OverviewFigure[];
  readonly changes: readonly OverviewChange[];
  readonly topEvents: readonly TopEvent[];
  readonly sampledShare: number | null;
  readonly complete: boolean;
  readonly exact: boolean;
}

/** The whole days of an overview, the oldest first, and when today began. In milliseconds. */
interface Days {
  readonly starts: readonly number[];
  readonly todayMs: number;
}

interface FigureRequest {
  readonly measure: Measure & { readonly kind: 'count' | 'users' | 'organizations' };
  readonly days: number;
}

const EVENTS: FigureRequest = { measure: { kind: 'count' }, days: 1 };

const PEOPLE: readonly FigureRequest[] = [
  { measure: { kind: 'users' }, days: 1 },
  { measure: { kind: 'organizations' }, days: 1 },
  { measure: { kind: 'users' }, days: WEEK_DAYS },
];

/** What was read of a figure. */
interface FigureRead {
  readonly figure: OverviewFigure;
  readonly complete: boolean;
  readonly exact: boolean;
}

/** Computes what there is to see in the morning: the numbers of yesterday, and what is unusual about them. */
export class OverviewReader {
  readonly #queryRunner: Pick<QueryRunner, 'rows' | 'all'>;
  readonly #config: QueryConfig;
  readonly #series: SeriesReader;

  constructor(queryRunner: Pick<QueryRunner, 'rows' | 'all'>, config: QueryConfig) {
    this.#queryRunner = queryRunner;
    this.#config = config;
    this.#series = new SeriesReader(queryRunner, config);
  }

  /**
   * @param timeZone a name that `timeZoneParameter` returned
   * @throws {Problem} as {@link QueryRunner.rows} does, except `query_too_expensive`
   */
  async read(timeZone: string, nowMs: number, context: QueryContext): Promise<Overview> {
    const days = daysBefore(timeZone, nowMs);
    const events = await this.#figure(EVENTS, timeZone, days, nowMs, context);
    const counts = events.figure.values.map((count) => count ?? 0);
    const weeks = events.complete ? weeksBefore(counts) : 0;
    const share = Math.min(1, SAMPLED_OF_DAY / Math.max(1, ...counts));
    const [people, names, values] = await Promise.all([
      Promise.all(PEOPLE.map((request) => this.#figure(request, timeZone, days, nowMs, context))),
      this.#names(timeZone, days, weeks, context),
      weeks < WEEKS_MIN ? [] : this.#values(days, share, weeks, context),
    ]);
    const figures = [events, ...people];
    const changes = [
      ...(weeks < WEEKS_MIN ? [] : (names ?? []).filter(isUnusual).map(changeOfName)),
      ...(values ?? []),
    ];
    return {
      timeZone,
      startDate: isoTime(days.starts[0] as number),
      endDate: isoTime(days.todayMs - 1),
      days: days.starts.map((ms) => isoTime(ms)),
      weeks,
      figures: figures.map(({ figure }) => figure),
      changes: changes.sort((one, other) => other.deviation - one.deviation),
      topEvents: topOf(names ?? [], weeks),
      sampledShare: values === undefined ? null : share,
      complete: names !== undefined && values !== undefined && figures.every(({ complete }) => complete),
      exact: figures.every(({ exact }) => exact),
    };
  }

  async #figure(
    { measure, days }: FigureRequest,
    timeZone: string,
    { starts, todayMs }: Days,
    nowMs: number,
    context: QueryContext,
  ): Promise<FigureRead> {
    const buckets = days === 1 ? [...starts, todayMs] : starts.filter((_, index) => index % days === 1);
    const range = { startMs: buckets[0] as number, endMs: days === 1 ? nowMs : todayMs - 1, buckets };
    const request = requestOf(measure, timeZone, range);
    const read = (await unlessTooExpensive(this.#series.read(request, context)))?.current;
    const { from, complete, exact } = read ?? { from: buckets.length, complete: false, exact: true };
    const found = read?.places.get(1)?.values;
    const values = buckets.map((_, index) => (index < from ? null : (found?.[index - from] ?? 0)));
    const today = days === 1 ? (values.pop() ?? null) : null;
    const [value = null, previous = null] = [values.at(-1), values.at(days === 1 ? -1 - WEEK_DAYS : -2)];
    return { figure: { measure: measure.kind, days, value, previous, values, today }, complete, exact };
  }

  async #names(
    timeZone: string,
    { starts, todayMs }: Days,
    weeks: number,
    context: QueryContext,
  ): Promise<readonly NameRow[] | undefined> {
    const range = { startMs: starts[0] as number, endMs: todayMs - 1, buckets: starts };
    const request = { ...requestOf({ kind: 'count' }, timeZone, range), groupBy: [{ field: 'event' }] } as const;
    const hiding: HidingStatement['hiding'] = (tables, hidden) =>
      namesQuery({ request, range, approximate: false, tables, hidden }, Math.max(1, weeks));
    return (await this.#rows(hiding, context)) as readonly NameRow[] | undefined;
  }

  /** Returns the values that are unusual; `undefined` when looking at them was too much. */
  async #values(
    { starts, todayMs }: Days,
    share: number,
    weeks: number,
    context: QueryContext,
  ): Promise<readonly OverviewChange[] | undefined> {
    const selection = { fields: [], properties: [], startMs: starts[0] as number, endMs: todayMs - 1 };
    const spans = sampledSpans([...starts, todayMs], share);
    const hiding: HidingStatement['hiding'] = (tables, hidden) =>
      valuesQuery(tables, hidden, selection, starts, spans, weeks);
    const rows = (await this.#rows(hiding, context)) as readonly ValueRow[] | undefined;
    return rows?.map(changeOfValue);
  }

  async #rows(hiding: HidingStatement['hiding'], context: QueryContext) {
    const budget = new TimeBudget(this.#config.QUERY_TIMEOUT_MS);
    const settings = collectingSettings(this.#config);
    return await unlessTooExpensive(
      reportRows(this.#queryRunner, { kind: 'overview', hiding, budget, settings, ...context }),
    );
  }
}

/** Returns what a query leads to; `undefined` when it was too much: what there is besides is shown without it. */
async function unlessTooExpensive<Result>(query: Promise<Result>): Promise<Result | undefined> {
  try {
    return await query;
  } catch (error) {
    if (error instanceof Problem && error.code === 'query_too_expensive') return undefined;
    throw error;
  }
}

function requestOf(measure: Measure, timeZone: string, range: SeriesRange): SeriesRequest {
  const selection = { fields: [], properties: [], startMs: range.startMs, endMs: range.endMs };
  return { selection, interval: 'day', timeZone, measure, groupBy: [], groups: 1, range, previous: undefined };
}

function daysBefore(timeZone: string, nowMs: number): Days {
  const todayMs = bucketStarts('day', timeZone, nowMs, nowMs)[0] as number;
  return { starts: bucketStartsBefore('day', timeZone, todayMs, OVERVIEW_DAYS), todayMs };
}

/**
 * Returns how many weeks before yesterday there is something to compare with: the first day with events is not whole, unless
 * there may be others before it.
 */
export function weeksBefore(counts: readonly number[]): number {
  const first = counts.findIndex((count) => count > 0);
  if (first === -1) return 0;
  const whole = first === 0 ? 0 : first + 1;
  return Math.max(0, Math.floor((counts.length - 1 - whole) / WEEK_DAYS));
}

/**
 * Returns the times of each day whose events are looked at: all of it, or the same share at the beginning of each of its parts, so
 * that days are compared by the same hours.
 *
 * @param bounds when each day begins, and the end of the last one
 */
export function sampledSpans(bounds: readonly number[], share: number): readonly Span[] {
  const [startMs = 0, endMs = 0] = [bounds[0], bounds.at(-1)];
  if (share === 1) return [{ fromMs: startMs, toMs: endMs }];
  return bounds.slice(1).flatMap((toMs, index) => {
    const fromMs = bounds[index] as number;
    const partMs = (toMs - fromMs) / PARTS_OF_DAY;
    return Array.from({ length: PARTS_OF_DAY }, (_, part) => {
      const partFromMs = Math.round(fromMs + part * partMs);
      return { fromMs: partFromMs, toMs: partFromMs + Math.ceil(partMs * share) };
    });
  });
}

function isUnusual([, , , , deviation]: NameRow): boolean {
  return deviation > UNUSUAL_DEVIATIONS;
}

function comparedOf([values, from, to, deviation]: Compared) {
  return { count: values.at(-1) ?? 0, expected: { from, to }, deviation, values };
}

function changeOfName([event, ...compared]: NameRow): OverviewChange {
  return { event, property: null, value: null, ...comparedOf(compared), of: null };
}

function changeOfValue([event, property, value, of, ...compared]: ValueRow): OverviewChange {
  return { event, property, value: parseExactJson(value), ...comparedOf(compared), of };
}

function topOf(names: readonly NameRow[], weeks: number): readonly TopEvent[] {
  return names
    .map(([event, ...compared]) => {
      const { count, expected, values } = comparedOf(compared);
      return { event, count, expected: weeks < WEEKS_MIN ? null : expected, values };
    })
    .filter(({ count }) => count > 0)
    .sort((one, other) => other.count - one.count)
    .slice(0, TOP_EVENTS_MAX);
}
