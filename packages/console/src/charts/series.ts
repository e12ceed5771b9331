import { type Calendar, type EventSeries, hoursOf, labelOfMeasure, toDouble, withDates } from '../base/base.ts';

type Series = EventSeries['series'][number];
export type GroupKey = Series['group'][number];

/** A series as it is drawn: with a name, and beside the series of the time before. */
export interface Line {
  readonly label: string;
  /** The values of `groupBy`; `undefined` for all other groups. */
  readonly group?: Series['group'] | undefined;
  readonly total: number | null;
  readonly values: readonly (number | null)[];
  readonly previous: Numbers | undefined;
}

/** Returns the lines of a response, the remaining groups last. */
export function linesOf({ series, other, measure, previous }: EventSeries): Line[] {
  const lines: Line[] = series.map((line, index) => ({
    ...doublesOf(line),
    group: line.group,
    label: line.group.length === 0 ? labelOfMeasure(measure) : line.group.map(labelOfKey).join(' / '),
    previous: doublesOf(previous?.series[index]),
  }));
  if (!other) return lines;
  return [...lines, { ...doublesOf(other), label: 'All others', previous: doublesOf(previous?.other ?? undefined) }];
}

type Numbers = Pick<Series, 'total' | 'values'>;

function doublesOf<Given extends Numbers | undefined>(line: Given): Given extends undefined ? undefined : Numbers;
function doublesOf(line: Numbers | undefined): Numbers | undefined {
  return line && { total: toDouble(line.total), values: line.values.map(toDouble) };
}

/** Returns the value of a group as a person reads it. */
export function labelOfKey(key: GroupKey): string {
  if (key === null) return '(none)';
  return typeof key === 'string' ? key : JSON.stringify(key);
}

/** A number of a line at one time. */
interface Read {
  /** The place of the line among all. */
  readonly index: number;
  readonly label: string;
  readonly value: number | null;
  /** The number of the time before; `null` where there is none. */
  readonly before: number | null;
}

/**
 * Returns the numbers of one bucket, the largest first.
 *
 * @param hidden the lines that are left out, by index
 */
export function readingOf(lines: readonly Line[], hidden: ReadonlySet<number>, bucket: number): Read[] {
  return lines
    .map(({ label, values, previous }, index) => ({
      ...{ index, label },
      ...{ value: values[bucket] ?? null, before: previous?.values[bucket] ?? null },
    }))
    .filter(({ index }) => !hidden.has(index))
    .toSorted((one, other) => (other.value ?? Number.NEGATIVE_INFINITY) - (one.value ?? Number.NEGATIVE_INFINITY));
}

/**
 * Returns the parameters of `GET /events/series` for those of the page. The interval follows from the range when the page
 * has none.
 *
 * @param calendar what days and weeks are by, as far as the page does not say
 */
export function seriesParams(params: URLSearchParams, calendar: Calendar, now: Date): URLSearchParams {
  const query = withDates(params, calendar, now);
  for (const [name, value] of Object.entries(calendar)) if (!query.has(name)) query.set(name, value);
  if (!query.has('interval')) query.set('interval', intervalOf(hoursOf(query, now)));
  return query;
}

function intervalOf(hours: number): string {
  if (hours <= 2) return 'minute';
  if (hours <= 3 * 24) return 'hour';
  return hours <= 200 * 24 ? 'day' : 'month';
}
