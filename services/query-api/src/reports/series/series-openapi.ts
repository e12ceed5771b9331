import type { PathDescriptions } from '@sluice/shared/http/openapi';
import { z } from 'zod';
import { type CommonDescription, timeSchema } from '../../http/openapi-schemas.ts';
import { eventFilters } from '../../records/events/events-openapi.ts';
import { querySchema } from '../../records/filters/filters-openapi.ts';
import { EXACT_DISTINCT_MAX } from './series-measure.ts';
import { seriesParameters } from './series-parameters.ts';

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

/** The response of `GET /events/series`. */
export const seriesSchema = z
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
    previous: z.object(lines).optional().meta({
      description: 'With `compare=previous`: the time before, with the same groups in the same order.',
    }),
  })
  .meta({ id: 'EventSeries' });

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

/** Describes `GET /events/series`. */
export function seriesPaths(common: CommonDescription): PathDescriptions {
  return {
    '/events/series': {
      get: {
        ...common,
        operationId: 'getEventSeries',
        summary: 'Numbers of events over time, by group',
        description:
          'Counts, distinct users and organizations, and statistics of a numeric property, by the hours, days, weeks or months of a time zone. `startDate` is required, `endDate` is now when left out. All filters of `GET /events` have to match, and every number equals what its events give.',
        tag: 'events',
        requestParams: { query: querySchema(seriesParameters, eventFilters) },
        responses: {
          200: { description: 'The numbers.', content: { 'application/json': { schema: seriesSchema, example } } },
        },
      },
    },
  };
}
