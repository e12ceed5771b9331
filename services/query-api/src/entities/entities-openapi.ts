import type { PathDescriptions } from '@sluice/shared/http/openapi';
import { z } from 'zod';
import { documentFilters, querySchema } from '../filters/filters-openapi.ts';
import {
  type CommonDescription,
  jsonObjectSchema,
  limitSchema,
  nextCursorSchema,
  timeSchema,
} from '../openapi-schemas.ts';
import { entitiesParameters } from './entities-parameters.ts';
import type { EntityRoute } from './entity-kinds.ts';

const filters = { properties: documentFilters('properties') };

/** Describes the list of users or organizations, and one of them. */
export function entityPaths(
  { path, idName, schema: name, tag, noun, exampleId }: EntityRoute,
  common: CommonDescription,
): PathDescriptions {
  const entity = z
    .object({ [idName]: z.string(), properties: jsonObjectSchema, firstSeenAt: timeSchema, lastSeenAt: timeSchema })
    .meta({ id: name });
  const example = {
    [idName]: exampleId,
    properties: { plan: 'pro' },
    firstSeenAt: '2026-03-01T12:00:00.000Z',
    lastSeenAt: '2026-03-02T08:30:00.000Z',
  };
  const page = z
    .object({ limit: limitSchema, results: z.array(entity), nextCursor: nextCursorSchema })
    .meta({ id: `${name}Page` });
  return {
    [path]: {
      get: {
        ...common,
        operationId: `list${name}s`,
        summary: `All ${tag}, ordered by identifier, a page at a time`,
        tag,
        requestParams: { query: querySchema(entitiesParameters, filters) },
        responses: {
          200: {
            description: `A page of ${tag}.`,
            content: {
              'application/json': {
                schema: page,
                example: { limit: 100, results: [example], nextCursor: null },
              },
            },
          },
        },
      },
    },
    [`${path}/{${idName}}`]: {
      get: {
        ...common,
        codes: ['not_found', ...common.codes],
        operationId: `get${name}`,
        summary: `${noun[0]?.toUpperCase()}${noun.slice(1)} as it is now`,
        tag,
        requestParams: {
          path: z.object({ [idName]: z.string().meta({ description: 'The identifier, percent-encoded.' }) }),
        },
        responses: {
          200: { description: 'As it is now.', content: { 'application/json': { schema: entity, example } } },
        },
      },
    },
  };
}
