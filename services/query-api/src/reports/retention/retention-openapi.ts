import type { PathDescriptions } from '@sluice/shared/http/openapi';
import { z } from 'zod';
import { type CommonDescription, timeSchema } from '../../http/openapi-schemas.ts';
import { eventDocumentFilters } from '../../records/events/events-openapi.ts';
import { fieldFilters, querySchema } from '../../records/filters/filters-openapi.ts';
import { peopleSchema } from '../people/people-schemas.ts';
import { reportEndSchemas } from '../report-schemas.ts';
import { retentionFilterable, retentionParameters } from './retention-parameters.ts';
import { retentionPeopleParameters } from './retention-people-parameters.ts';

const cohort = z
  .object({
    start: timeSchema.meta({ description: 'When the local interval begins, also when the range begins later.' }),
    size: z.int().min(0).meta({ description: 'Users whose first matching event in the range is in the interval.' }),
    returned: z.array(z.int().min(0)).meta({
      description:
        'For 0, 1, 2, … intervals later: how many of them have a return event then, inside the range; in their own interval one that is not before their first event. Without `returnEvent` the first number is `size`.',
    }),
  })
  .meta({ id: 'Cohort' });

/** The response of `GET /events/retention`. */
export const retentionSchema = z
  .object({
    interval: z.string(),
    timeZone: z.string(),
    periods: z.int().meta({ description: 'The length of every `returned`.' }),
    cohorts: z.array(cohort).meta({
      description: 'One for each interval of the range, the oldest first; none when `complete` is `false`.',
    }),
    ...reportEndSchemas,
  })
  .meta({ id: 'Retention' });

const person = z
  .object({
    id: z.string().meta({ description: 'The identifier of the user.' }),
    startedAt: timeSchema.meta({ description: 'When the first event in the range was that makes the cohort.' }),
  })
  .meta({ id: 'RetentionPerson' });

/** The response of `GET /events/retention/people`. */
const retentionPeopleSchema = peopleSchema(person).meta({ id: 'RetentionPeople' });

const filters = {
  ...eventDocumentFilters,
  operators: fieldFilters(retentionFilterable.fields, {
    'event[in]': 'signed_up,invited',
    'returnEvent[ne]': 'opened',
  }),
};

/** Describes `GET /events/retention` and `/events/retention/people`. */
export function retentionPaths(common: CommonDescription): PathDescriptions {
  return {
    '/events/retention': {
      get: {
        ...common,
        operationId: 'getRetention',
        summary: 'How many users come back, and when',
        description:
          'A user belongs to the cohort of the interval of its first event in the range that `event` names. Filters on `event` and `returnEvent` may have operators; all other filters, and the dates, hold for both. A query that runs out of its time is answered with `complete: false` and no cohorts: whose first event an event is takes all events of the range to know.',
        tag: 'events',
        requestParams: { query: querySchema(retentionParameters, filters, ['startDate']) },
        responses: {
          200: {
            description: 'The cohorts.',
            content: {
              'application/json': {
                schema: retentionSchema,
                example: {
                  ...{ interval: 'week', timeZone: 'Europe/Berlin', periods: 3 },
                  cohorts: [
                    { start: '2026-03-01T23:00:00.000Z', size: 120, returned: [120, 64, 51] },
                    { start: '2026-03-08T23:00:00.000Z', size: 98, returned: [98, 50, 0] },
                  ],
                  startDate: '2026-03-01T23:00:00.000Z',
                  endDate: '2026-03-15T22:59:59.999Z',
                  complete: true,
                  exact: true,
                },
              },
            },
          },
        },
      },
    },
    '/events/retention/people': {
      get: {
        ...common,
        operationId: 'listRetentionPeople',
        summary: 'The users of a cohort, or those who came back, a page at a time',
        description:
          'The users behind a number of retention with the same parameters. Each page costs as much as retention. A query that runs out of its time is answered with `complete: false` and nobody.',
        tag: 'events',
        requestParams: { query: querySchema(retentionPeopleParameters, filters, ['startDate', 'cohort']) },
        responses: {
          200: {
            description: 'A page of users.',
            content: {
              'application/json': {
                schema: retentionPeopleSchema,
                example: {
                  limit: 100,
                  results: [{ id: 'jane', startedAt: '2026-03-01T12:00:00.000Z' }],
                  nextCursor: null,
                  startDate: '2026-03-01T00:00:00.000Z',
                  endDate: '2026-03-31T23:59:59.999Z',
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
