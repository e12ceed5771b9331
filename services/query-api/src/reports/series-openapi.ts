import type { PathDescriptions } from '@sluice/shared/http/openapi';
import { z } from 'zod';
import { eventFilters } from '../events/events-openapi.ts';
import { querySchema } from '../filters/filters-openapi.ts';
import { type CommonDescription, timeSchema } from '../openapi-schemas.ts';
import { reportEndSchemas } from './report-schemas.ts';
import { seriesParameters } from './series-parameters.ts';

const valueSchema = z.number().nullable();
const valuesSchema = z.array(valueSchema).meta({
  description:
    'One for each bucket. A bucket without events is 0 for `count`, `sum`, `users` and `organizations`, and `null` for the others. `null` also where `complete` is `false` and the bucket was not computed.',
});
const totalSchema = valueSchema.meta({
  description: 'Of the whole range: distinct users are counted once. `null` when it was not computed.',
});

const line = z
  .object({
    group: z
      .array(z.unknown())
      .meta({ description: 'The JSON value of each field of `groupBy`; `null` when missing.' }),
    total: totalSchema,
    values: valuesSchema,
  })
  .meta({ id: 'Series' });

const lines = {
  buckets: z.array(timeSchema).meta({ description: 'When each bucket begins; the first also before `startDate`.' }),
  series: z.array(line),
  other: z
    .object({ total: totalSchema, values: valuesSchema })
    .nullable()
    .meta({ description: 'All other groups together; `null` when there are none.' }),
  total: totalSchema,
};

const series = z
  .object({
    interval: z.string(),
    timeZone: z.string(),
    measure: z.string(),
    groupBy: z.array(z.string()),
    ...reportEndSchemas,
    ...lines,
    previous: z
      .object({ startDate: timeSchema, endDate: timeSchema, ...lines })
      .optional()
      .meta({
        description: 'Only with `compare=previous`: the time before, with the same groups in the same order.',
      }),
  })
  .meta({ id: 'SeriesReport' });

/** Describes `GET /events/series`. */
export function seriesPaths(common: CommonDescription): PathDescriptions {
  return {
    '/events/series': {
      get: {
        ...common,
        operationId: 'getSeries',
        summary: 'A measure over time, by groups',
        description:
          'Buckets are the local minutes, hours, days, ISO weeks and months of `timeZone`; days of 23 and 25 hours are right. A query that runs out of its time is answered with `complete: false` and the buckets that were computed, the newest first.',
        tag: 'events',
        requestParams: { query: querySchema(seriesParameters, eventFilters, ['startDate']) },
        responses: {
          200: {
            description: 'The values of all buckets.',
            content: {
              'application/json': {
                schema: series,
                example: {
                  ...{ interval: 'day', timeZone: 'UTC', measure: 'count', groupBy: ['properties.plan'] },
                  startDate: '2026-03-01T00:00:00.000Z',
                  endDate: '2026-03-02T23:59:59.999Z',
                  buckets: ['2026-03-01T00:00:00.000Z', '2026-03-02T00:00:00.000Z'],
                  series: [{ group: ['pro'], total: 12, values: [5, 7] }],
                  other: null,
                  total: 12,
                  complete: true,
                  exact: true,
                },
              },
            },
          },
        },
      },
    },
  };
}
