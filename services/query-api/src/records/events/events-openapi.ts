import type { PathDescriptions } from '@sluice/shared/http/openapi';
import { z } from 'zod';
import {
  type CommonDescription,
  jsonObjectSchema,
  limitSchema,
  nextCursorSchema,
  timeSchema,
} from '../../http/openapi-schemas.ts';
import { documentFilters, fieldFilters, querySchema } from '../filters/filters-openapi.ts';
import { DOCUMENT_FIELDS, EVENT_FIELDS, type EventColumnType } from './event-columns.ts';
import { eventFilterable } from './event-selection.ts';
import { eventParameters } from './events-parameters.ts';

const SCHEMAS: Readonly<Record<EventColumnType, z.ZodType>> = {
  uuid: z.guid(),
  text: z.string(),
  identifier: z.string().nullable(),
  json: jsonObjectSchema,
  milliseconds: timeSchema,
  microseconds: timeSchema,
};

const event = z
  .object(
    Object.fromEntries(
      EVENT_FIELDS.map(([field, { type, description }]) => {
        const schema = SCHEMAS[type];
        return [field, description === undefined ? schema : schema.meta({ description })];
      }),
    ),
  )
  .meta({ id: 'Event' });

export const eventExample: Readonly<Record<string, unknown>> = Object.fromEntries(
  EVENT_FIELDS.map(([field, { example }]) => [field, example]),
);

const eventPage = z
  .object({
    limit: limitSchema,
    offset: z.int().min(0),
    results: z.array(event),
    nextCursor: nextCursorSchema,
    total: z.int().min(0).nullable().meta({
      description:
        'The exact number of events on all pages; `null` when it was not requested, when counting exceeded its budget, or when it failed after the results were sent.',
    }),
    totalIsLowerBound: z.boolean().optional().meta({
      description: 'Only with `total=capped`: whether there are more events than `total`.',
    }),
  })
  .meta({ id: 'EventPage' });

/** The filters on the properties of an event's JSON objects. */
export const eventDocumentFilters = Object.fromEntries(
  DOCUMENT_FIELDS.map((document) => [document, documentFilters(document)]),
);

/** The filters of all reads of events, except the parameters with fixed names. */
export const eventFilters = {
  ...eventDocumentFilters,
  operators: fieldFilters(eventFilterable.fields, { 'userId[in]': 'jane,joe', 'event[prefix]': 'invoice_' }),
};

/** Describes `GET /events`. */
export function eventPaths(common: CommonDescription): PathDescriptions {
  return {
    '/events': {
      get: {
        ...common,
        operationId: 'listEvents',
        summary: 'Events, a page at a time',
        description:
          'All parameters are optional, and all filters have to match. Pages by `nextCursor` cost the same however deep they are, and neither skip nor repeat an event while others arrive.',
        tag: 'events',
        requestParams: { query: querySchema(eventParameters, eventFilters) },
        responses: {
          200: {
            description: 'A page of events.',
            content: {
              'application/json': {
                schema: eventPage,
                example: { limit: 100, offset: 0, results: [eventExample], nextCursor: null, total: 1 },
              },
            },
          },
        },
      },
    },
  };
}
