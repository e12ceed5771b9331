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
