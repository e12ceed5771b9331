import type { PathDescriptions } from '@sluice/shared/http/openapi';
import { z } from 'zod';
import { DOCUMENT_FIELDS } from '../../events/event-columns.ts';
import { eventFilterable } from '../../events/event-selection.ts';
import { eventDocumentFilters } from '../../events/events-openapi.ts';
import { fieldFilters, openParameters, querySchema } from '../../filters/filters-openapi.ts';
import { PROPERTY_FILTERS_MAX, STEPS_MAX } from '../../limits.ts';
import type { CommonDescription } from '../../openapi-schemas.ts';
import { reportEndSchemas } from '../report-schemas.ts';
import { funnelParameters } from './funnel-parameters.ts';
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

/** Describes `GET /events/funnel`. */
export function funnelPaths(common: CommonDescription): PathDescriptions {
  return {
    '/events/funnel': {
      get: {
        ...common,
        operationId: 'getFunnel',
        summary: 'How many get from one event to the next',
        description:
          'A user (or an organization) completes step n when events of the steps 1 to n happened in this order, by `timestamp` and then `uuid`, each strictly after the one before, within the window that begins with the first. Every event of the first step may begin an attempt; each step takes the earliest event that fits. The attempt that gets furthest counts, the earliest of equals. Dates and filters hold for the events of all steps. A query that runs out of its time is answered with `complete: false` and no counts.',
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
  };
}
