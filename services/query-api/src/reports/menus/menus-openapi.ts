import type { PathDescriptions } from '@sluice/shared/http/openapi';
import { z } from 'zod';
import { NAME_DOTS_MAX } from '../../http/limits.ts';
import { type CommonDescription, timeSchema } from '../../http/openapi-schemas.ts';
import { eventFilters } from '../../records/events/events-openapi.ts';
import { querySchema } from '../../records/filters/filters-openapi.ts';
import type { ParameterShape } from '../../records/filters/parameter-schemas.ts';
import { SAMPLE_CHARACTERS_MAX, SAMPLE_EVENTS_MAX } from './event-sample.ts';
import { MENU_ENTRIES_MAX } from './menu-entries.ts';
import { namesParameters, propertiesParameters, valuesParameters } from './menus-parameters.ts';
import { JSON_TYPES, NAME_CHARACTERS_MAX, NAMES_CHARACTERS_MAX } from './property-paths.ts';

const number = new Intl.NumberFormat('en');

const SAMPLE = `the newest ${number.format(SAMPLE_EVENTS_MAX)} events that match; fewer when these have more than ${number.format(SAMPLE_CHARACTERS_MAX)} characters to read or ${number.format(MENU_ENTRIES_MAX)} different results`;

const count = z.int().min(1);

const dates = {
  startDate: timeSchema.nullable().meta({ description: 'As it was applied; `null` without one.' }),
  endDate: timeSchema.nullable().meta({ description: 'As it was applied; `null` without one.' }),
};

const name = z
  .object({ event: z.string(), type: z.string(), count, firstSeenAt: timeSchema, lastSeenAt: timeSchema })
  .meta({ id: 'EventName' });

const property = z
  .object({
    path: z.string().meta({ description: 'As a filter names it.' }),
    types: z.array(z.enum(JSON_TYPES)).min(1).meta({ description: 'The types of its values.' }),
    share: z.number().min(0).max(1).meta({ description: 'The part of the sampled events that have it.' }),
    lastSeenAt: timeSchema.meta({ description: 'The time of the newest of these events that has it.' }),
  })
  .meta({ id: 'EventProperty' });

const value = z
  .object({ value: z.unknown().meta({ description: 'Of its JSON type, with all digits of a number.' }), count })
  .meta({ id: 'EventValue' });

const sampledEvents = z.int().min(0);

/** The response of `GET /events/values`. */
export const valuesSchema = z
  .object({ ...dates, results: z.array(value), sampledEvents: sampledEvents.nullable() })
  .meta({ id: 'EventValues' });

/** Describes `GET /events/names`, `/events/properties` and `/events/values`. */
export function menuPaths(common: CommonDescription): PathDescriptions {
  return {
    ...menu(common, {
      path: 'names',
      operationId: 'listEventNames',
      summary: 'The names and types of events, the most frequent first',
      description: 'Every number is exact. Without filters on anything but `event` and `type`, few rows are read.',
      parameters: namesParameters,
      schema: z.object({ ...dates, results: z.array(name) }).meta({ id: 'EventNames' }),
      result: {
        event: 'signed_up',
        type: 'track',
        count: 12,
        firstSeenAt: '2026-01-01T09:00:00.000Z',
        lastSeenAt: '2026-03-01T12:00:00.000Z',
      },
    }),
    ...menu(common, {
      path: 'properties',
      operationId: 'listEventProperties',
      summary: 'The properties of events, the most frequent first',
      description: `Of ${SAMPLE}. A path reaches into objects by dots, as filters do, and not into the items of arrays. Names with more than ${NAME_DOTS_MAX} dots or ${NAME_CHARACTERS_MAX} characters are left out. Names of ${number.format(NAMES_CHARACTERS_MAX)} characters together also end the sample.`,
      parameters: propertiesParameters,
      schema: z.object({ ...dates, results: z.array(property), sampledEvents }).meta({ id: 'EventProperties' }),
      result: { path: 'properties.plan', types: ['string'], share: 1, lastSeenAt: '2026-03-01T12:00:00.000Z' },
      sampledEvents: 12,
    }),
    ...menu(common, {
      path: 'values',
      operationId: 'listEventValues',
      summary: 'The values of a property or a field, the most frequent first',
      description: `Of ${SAMPLE}. Of \`event\` and \`type\`, all events are counted, and \`sampledEvents\` is \`null\`. The count of a value says how many events a filter by this value finds: an item of an array is a value too. An event without the property, or without the identifier, has no value.`,
      parameters: valuesParameters,
      schema: valuesSchema,
      result: { value: 'pro', count: 12 },
      sampledEvents: 12,
    }),
  };
}

interface MenuDescription {
  readonly path: string;
  readonly operationId: string;
  readonly summary: string;
  readonly description: string;
  readonly parameters: ParameterShape;
  readonly schema: z.ZodType;
  readonly result: object;
  readonly sampledEvents?: number;
}

function menu(common: CommonDescription, { path, parameters, schema, result, ...described }: MenuDescription) {
  const { sampledEvents, ...operation } = described;
  const example = { startDate: null, endDate: null, results: [result], ...(sampledEvents && { sampledEvents }) };
  return {
    [`/events/${path}`]: {
      get: {
        ...common,
        ...operation,
        tag: 'events',
        requestParams: { query: querySchema(parameters, eventFilters) },
        responses: {
          200: {
            description: 'The names, properties or values.',
            content: { 'application/json': { schema, example } },
          },
        },
      },
    },
  } satisfies PathDescriptions;
}
