import { Turns } from '@sluice/shared/base/turns';
import type { OperationDescription } from '@sluice/shared/http/openapi';
import { z } from 'zod';
import { type CommonDescription, once, sendJson, timeSchema } from '../../http/http.ts';
import { filtersOfEvents, querySchema, withIdentity } from '../../records/records.ts';
import type { QueryRead, ReadDependencies } from '../../store/store.ts';
import { countWithOrganization, type FoundNothing, foundNothingSchemas } from '../events-with-organization.ts';
import { keyValue, nameOfKey } from '../group-key.ts';
import { nameOfMeasure, parseSeriesRequest, type SeriesRequest, seriesParameters } from './series-parameters.ts';
import { EXACT_DISTINCT_MAX } from './series-query.ts';
import { emptyValues, type SeriesNumbers, SeriesReader, type SeriesResult, totalOf } from './series-reader.ts';

/** Returns `GET /events/series`: numbers over time, by group. */
export function seriesRead({ config, queryRunner }: ReadDependencies): QueryRead<SeriesRequest> {
  const reader = new SeriesReader(queryRunner, config);
  return {
    path: '/events/series',
    describe: describeSeries,
    repeats: true,
    parse: parseSeriesRequest,
    async respond(request, given, reply) {
      const context = await withIdentity(queryRunner, request.selection, given);
      const result = await reader.read(request, context);
      const foundNothing = result.current.isEmpty
        ? await countWithOrganization(queryRunner, request.selection, { kind: 'series', ...context })
        : {};
      return await sendJson(reply, seriesJson(request, result, foundNothing));
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
export interface SeriesReport extends Lines, FoundNothing {
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
  foundNothing: FoundNothing,
): AsyncGenerator<string, void, undefined> {
  const { interval, timeZone, measure, groupBy } = request;
  const computed = previous ? [current, previous] : [current];
  const asked = { interval, timeZone, measure: nameOfMeasure(measure), groupBy: groupBy.map(nameOfKey) };
  yield `${JSON.stringify(asked).slice(0, -1)},`;
  yield* linesJson(request, current);
  const complete = computed.every((numbers) => numbers.complete);
  const exact = computed.every((numbers) => numbers.exact);
  yield `,${JSON.stringify({ complete, exact, ...foundNothing }).slice(1, -1)}`;
  if (previous) {
    yield ',"previous":{';
    yield* linesJson(request, previous);
    yield '}';
  }
  yield '}';
}

/** The members of {@link Lines}. */
async function* linesJson(request: SeriesRequest, numbers: SeriesNumbers): AsyncGenerator<string, void, undefined> {
  const { range, from, groups, places } = numbers;
  const turns = new Turns();
  const buckets = range.buckets.slice(from);
  const lineOf = (place: number): Line => {
    const values = places.get(place)?.values ?? emptyValues({ request }, buckets.length);
    // NaN is null in JSON.
    return { total: totalOf(request, numbers, place), values: [...values] };
  };
  const head = {
    startDate: new Date(range.startMs).toISOString(),
    endDate: new Date(range.endMs).toISOString(),
    buckets: buckets.map((ms) => new Date(ms).toISOString()),
  };
  yield `${JSON.stringify(head).slice(1, -1)},"series":[`;
  for (const [index, [, ...keys]] of groups.entries()) {
    const group = request.groupBy.map((key, index) => keyValue(key, keys[index] ?? ''));
    yield `${index === 0 ? '' : ','}${JSON.stringify({ group, ...lineOf(index + 1) })}`;
    await turns.next();
  }
  const other = groups.length + 1;
  const rest = { other: places.has(other) ? lineOf(other) : null, total: totalOf(request, numbers) };
  yield `],${JSON.stringify(rest).slice(1, -1)}`;
}

/** Returns the schema of the response of `GET /events/series`. */
export const seriesSchema = once(() => {
  const number = new Intl.NumberFormat('en');
  const line = {
    total: z.number().nullable().meta({
      description:
        'Over the whole range. Distinct counts are not a sum of `values`. `null` when no event has a number, and when `complete` is `false`.',
    }),
    values: z.array(z.number().nullable()).meta({
      description: 'One for each bucket. Without events `0`; `null` for `avg`, `min`, `max` and quantiles.',
    }),
  };

  const lines = {
    startDate: timeSchema,
    endDate: timeSchema,
    buckets: z
      .array(timeSchema)
      .meta({ description: 'When each bucket begins; the first can begin before `startDate`.' }),
    series: z
      .array(
        z.object({
          group: z.array(z.unknown()).meta({
            description:
              'A JSON value for each name of `groupBy`; `null` also when it is missing. Empty without `groupBy`.',
          }),
          ...line,
        }),
      )
      .meta({ description: 'The largest groups, the largest first.' }),
    other: z.object(line).nullable().meta({ description: 'All other groups together; `null` when there are none.' }),
    total: line.total,
  };

  return z
    .object({
      interval: z.string(),
      timeZone: z.string(),
      measure: z.string(),
      groupBy: z.array(z.string()),
      ...lines,
      complete: z.boolean().meta({
        description:
          '`false` when the time of a query was not enough: then there are the newest buckets alone, whose values are complete, the groups are those of the newest buckets, and every `total` is `null`.',
      }),
      exact: z.boolean().meta({
        description: `Whether every number is exact. Distinct counts are exact up to ${number.format(EXACT_DISTINCT_MAX)}; larger ones are estimates, with an error below 1 %, only where exact ones would take too much memory. A number beyond the range of 64-bit floats is \`null\` and not exact.`,
      }),
      ...foundNothingSchemas(),
      previous: z.object(lines).optional().meta({
        description: 'With `compare=previous`: the time before, with the same groups in the same order.',
      }),
    })
    .meta({ id: 'EventSeries' });
});

/** Describes `GET /events/series`. */
function describeSeries(common: CommonDescription): OperationDescription {
  const example = {
    interval: 'day',
    timeZone: 'UTC',
    measure: 'count',
    groupBy: ['properties.plan'],
    startDate: '2026-01-01T00:00:00.000Z',
    endDate: '2026-01-02T23:59:59.999Z',
    buckets: ['2026-01-01T00:00:00.000Z', '2026-01-02T00:00:00.000Z'],
    series: [{ group: ['pro'], total: 12, values: [5, 7] }],
    other: { total: 3, values: [3, 0] },
    total: 15,
    complete: true,
    exact: true,
  };
  return {
    ...common,
    operationId: 'getEventSeries',
    summary: 'Numbers of events over time, by group',
    description:
      'Counts, distinct users and organizations, and statistics of a numeric property, by the hours, days, weeks or months of a time zone. `startDate` is required, `endDate` is now when left out. All filters of `GET /events` have to match, and every number equals what its events give.',
    tag: 'events',
    requestParams: { query: querySchema(seriesParameters, filtersOfEvents()) },
    responses: {
      200: { description: 'The numbers.', content: { 'application/json': { schema: seriesSchema(), example } } },
    },
  };
}
