import { keyValue, nameOfKey } from './group-key.ts';
import { emptyValue, nameOfMeasure } from './series-measure.ts';
import type { SeriesRequest } from './series-parameters.ts';
import { TOTAL_PLACE } from './series-query.ts';
import type { Numbers, SeriesNumbers, SeriesResult } from './series-reader.ts';

/** A value over the range, and one for each bucket. */
interface Line {
  /** `null` also when not all buckets are known. */
  readonly total: number | null;
  readonly values: readonly (number | null)[];
}

/** The numbers of a range. */
interface Lines {
  readonly startDate: string;
  readonly endDate: string;
  /** When each bucket begins, of those that are complete. */
  readonly buckets: readonly string[];
  readonly series: readonly (Line & { readonly group: readonly unknown[] })[];
  /** All groups together that are not in `series`; `null` when there are none. */
  readonly other: Line | null;
  readonly total: number | null;
}

/** The response of `GET /events/series`. */
export interface SeriesReport extends Lines {
  readonly interval: string;
  readonly timeZone: string;
  readonly measure: string;
  readonly groupBy: readonly string[];
  readonly complete: boolean;
  readonly exact: boolean;
  readonly previous?: Lines;
}

/** Returns the response to a request. */
export function seriesReport(request: SeriesRequest, { current, previous }: SeriesResult): SeriesReport {
  const { interval, timeZone, measure, groupBy } = request;
  const computed = previous ? [current, previous] : [current];
  return {
    interval,
    timeZone,
    measure: nameOfMeasure(measure),
    groupBy: groupBy.map(nameOfKey),
    ...linesOf(request, current),
    complete: computed.every(({ complete }) => complete),
    exact: computed.every(({ exact }) => exact),
    ...(previous && { previous: linesOf(request, previous) }),
  };
}

function linesOf(request: SeriesRequest, numbers: SeriesNumbers): Lines {
  const { range, from, complete, groups, places } = numbers;
  const buckets = range.buckets.slice(from);
  const empty = emptyValue(request.measure);
  const totalOf = (line: Numbers | undefined): number | null => {
    const total = line ? line.total : complete ? empty : undefined;
    return total ?? null;
  };
  const lineOf = (line: Numbers | undefined): Line => ({
    total: totalOf(line),
    values: buckets.map((start) => (line?.values.has(start) ? (line.values.get(start) ?? null) : empty)),
  });
  const other = places.get(groups.length + 1);
  return {
    startDate: new Date(range.startMs).toISOString(),
    endDate: new Date(range.endMs).toISOString(),
    buckets: buckets.map((ms) => new Date(ms).toISOString()),
    series: groups.map(([, ...keys], index) => ({
      group: request.groupBy.map((key, position) => keyValue(key, keys[position] ?? '')),
      ...lineOf(places.get(index + 1)),
    })),
    other: other ? lineOf(other) : null,
    total: totalOf(places.get(TOTAL_PLACE)),
  };
}
