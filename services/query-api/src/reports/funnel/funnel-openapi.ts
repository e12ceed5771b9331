import type { PathDescriptions } from '@sluice/shared/http/openapi';
import { z } from 'zod';
import { PROPERTY_FILTERS_MAX, STEPS_MAX } from '../../http/limits.ts';
import { type CommonDescription, timeSchema } from '../../http/openapi-schemas.ts';
import { DOCUMENT_FIELDS } from '../../records/events/event-columns.ts';
import { eventFilterable } from '../../records/events/event-selection.ts';
import { eventDocumentFilters } from '../../records/events/events-openapi.ts';
import { fieldFilters, openParameters, querySchema } from '../../records/filters/filters-openapi.ts';
import { peopleSchema } from '../people/people-schemas.ts';
import { reportEndSchemas } from '../report-schemas.ts';
import { funnelParameters } from './funnel-parameters.ts';
import { funnelPeopleParameters } from './funnel-people-parameters.ts';
import { FUNNEL_GROUPS_MAX } from './funnel-query.ts';

const step = z
  .object({
    event: z.string(),
    count: z.int().min(0).nullable().meta({
      description: 'How many completed this step and all before it; `null` when `complete` is `false`.',
    }),
    medianSecondsFromPrevious: z.number().min(0).nullable().meta({
      description:
        'The median time since the previous step, of those who completed this one, to the millisecond; `null` for the first step and for steps nobody reached.',
    }),
  })
  .meta({ id: 'FunnelStep' });

/** The response of `GET /events/funnel`. */
export const funnelSchema = z
  .object({
    steps: z.array(step),
    groupBy: z.array(z.string()).max(1).meta({ description: 'The field that `groupBy` named, if it did.' }),
    groups: z
      .array(
        z
          .object({
            group: z
              .array(z.unknown())
              .length(1)
              .meta({ description: "The field's value, as JSON; `null` is missing." }),
            steps: z.array(step),
          })
          .meta({ id: 'FunnelGroup' }),
      )
      .max(FUNNEL_GROUPS_MAX)
      .optional()
      .meta({
        description: `The ${FUNNEL_GROUPS_MAX} largest groups by their first step, the largest first. Only with \`groupBy\`, and when \`complete\` is \`true\`.`,
      }),
    ...reportEndSchemas,
  })
  .meta({ id: 'Funnel' });

const person = z
  .object({
    id: z.string().meta({ description: 'The identifier of the user or the organization.' }),
    startedAt: timeSchema.meta({ description: 'When the attempt that counts began: its first step.' }),
    reachedAt: timeSchema.meta({
      description: 'When it got to the step; of those who dropped out, to the step before.',
    }),
  })
  .meta({ id: 'FunnelPerson' });

/** The response of `GET /events/funnel/people`. */
const funnelPeopleSchema = peopleSchema(person).meta({ id: 'FunnelPeople' });

const filters = {
  ...eventDocumentFilters,
  stepFilters: openParameters(
    `^step[1-${STEPS_MAX}]\\.(${DOCUMENT_FIELDS.join('|')})\\.`,
    `\`step<n>.properties.<name>[<operator>]=<value>\`: a filter on the events of one step alone, counted from 1. They count among the ${PROPERTY_FILTERS_MAX} filters on properties.`,
    { 'step2.properties.plan': 'pro', 'step2.properties.amount[gte]': '10' },
    PROPERTY_FILTERS_MAX,
  ),
  operators: fieldFilters(eventFilterable.fields, { 'userId[in]': 'jane,joe' }),
};

/** Describes `GET /events/funnel` and `/events/funnel/people`. */
export function funnelPaths(common: CommonDescription): PathDescriptions {
  return {
    '/events/funnel': {
      get: {
        ...common,
        operationId: 'getFunnel',
        summary: 'How many get from one event to the next',
        description:
          'A user (or an organization) completes step n when events of the steps 1 to n happened in this order, by `timestamp`, at equal times in the order of arrival, each strictly after the one before, within the window that begins with the first. Every event of the first step may begin an attempt; each step takes the earliest event that fits. The attempt that gets furthest counts, the earliest of equals. Filters hold for the events of all steps. The dates say when the first step is; the others may be after `endDate`, within the window. A query that runs out of its time is answered with `complete: false` and no counts.',
        tag: 'events',
        requestParams: { query: querySchema(funnelParameters, filters, ['startDate', 'steps']) },
        responses: {
          200: {
            description: 'The counts of the steps.',
            content: {
              'application/json': {
                schema: funnelSchema,
                example: {
                  steps: [
                    { event: 'signed_up', count: 120, medianSecondsFromPrevious: null },
                    { event: 'invoice_paid', count: 45, medianSecondsFromPrevious: 86_400.5 },
                  ],
                  groupBy: [],
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
    '/events/funnel/people': {
      get: {
        ...common,
        operationId: 'listFunnelPeople',
        summary: 'Who completed a step, or dropped out before it, a page at a time',
        description:
          'The users (or with `by=organization` the organizations) behind a number of the funnel of the same parameters: those who completed the step, or with `dropped=true` those who completed only the steps before it. Each page costs as much as the funnel. A query that runs out of its time is answered with `complete: false` and nobody.',
        tag: 'events',
        requestParams: { query: querySchema(funnelPeopleParameters, filters, ['startDate', 'steps', 'step']) },
        responses: {
          200: {
            description: 'A page of users or organizations.',
            content: {
              'application/json': {
                schema: funnelPeopleSchema,
                example: {
                  limit: 100,
                  results: [
                    { id: 'jane', startedAt: '2026-03-01T12:00:00.000Z', reachedAt: '2026-03-02T08:00:00.000Z' },
                  ],
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
