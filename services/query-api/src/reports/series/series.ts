import { Turns } from '@sluice/shared/base/turns';
import { sendJson } from '../../http/json-response.ts';
import type { QueryRead, ReadDependencies } from '../../store/read-route.ts';
import { keyValue, nameOfKey } from '../group-key.ts';
import { emptyValues, type Numbers } from './series-lines.ts';
import { emptyValue, nameOfMeasure } from './series-measure.ts';
import { parseSeriesRequest, type SeriesRequest } from './series-parameters.ts';
import { TOTAL_PLACE } from './series-query.ts';
import { type SeriesNumbers, SeriesReader, type SeriesResult } from './series-reader.ts';

/** Returns `GET /events/series`: numbers over time, by group. */
export function seriesRead({ config, queryRunner }: ReadDependencies): QueryRead<SeriesRequest> {
  const reader = new SeriesReader(queryRunner, config);
  return {
    path: '/events/series',
    repeats: true,
    parse: parseSeriesRequest,
    async respond(request, context, reply) {
      return await sendJson(reply, seriesJson(request, await reader.read(request, context)));
    },
  };
}

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

/** Returns the JSON of a {@link SeriesReport}, in chunks: it may have a million numbers. */
export async function* seriesJson(
  request: SeriesRequest,
  { current, previous }: SeriesResult,
): AsyncGenerator<string, void, undefined> {
  const { interval, timeZone, measure, groupBy } = request;
  const computed = previous ? [current, previous] : [current];
  const asked = { interval, timeZone, measure: nameOfMeasure(measure), groupBy: groupBy.map(nameOfKey) };
  yield `${JSON.stringify(asked).slice(0, -1)},`;
  yield* linesJson(request, current);
  const complete = computed.every((numbers) => numbers.complete);
  const exact = computed.every((numbers) => numbers.exact);
  yield `,${JSON.stringify({ complete, exact }).slice(1, -1)}`;
  if (previous) {
    yield ',"previous":{';
    yield* linesJson(request, previous);
    yield '}';
  }
  yield '}';
}

/** The members of {@link Lines}. */
async function* linesJson(request: SeriesRequest, numbers: SeriesNumbers): AsyncGenerator<string, void, undefined> {
  const { range, from, complete, groups, places } = numbers;
  const turns = new Turns();
  const buckets = range.buckets.slice(from);
  const empty = emptyValue(request.measure);
  const totalOf = (line: Numbers | undefined): number | null => {
    const total = line ? line.total : complete ? empty : undefined;
    return total ?? null;
  };
  const lineOf = (line: Numbers | undefined): Line => {
    // NaN is null in JSON.
    return { total: totalOf(line), values: [...(line?.values ?? emptyValues({ request }, buckets.length))] };
  };
  const head = {
    startDate: new Date(range.startMs).toISOString(),
    endDate: new Date(range.endMs).toISOString(),
    buckets: buckets.map((ms) => new Date(ms).toISOString()),
  };
  yield `${JSON.stringify(head).slice(1, -1)},"series":[`;
  for (const [index, [, ...keys]] of groups.entries()) {
    const group = request.groupBy.map((key, index) => keyValue(key, keys[index] ?? ''));
    yield `${index === 0 ? '' : ','}${JSON.stringify({ group, ...lineOf(places.get(index + 1)) })}`;
    await turns.next();
  }
  const other = places.get(groups.length + 1);
  const rest = { other: other ? lineOf(other) : null, total: totalOf(places.get(TOTAL_PLACE)) };
  yield `],${JSON.stringify(rest).slice(1, -1)}`;
}
