import type { PathDescriptions } from '@sluice/shared/http/openapi';
import { z } from 'zod';
import {
  type CommonDescription,
  jsonObjectSchema,
  limitSchema,
  nextCursorSchema,
  timeSchema,
} from '../../http/openapi-schemas.ts';
import { documentFilters, querySchema } from '../filters/filters-openapi.ts';
import { DELETE_USER } from './delete-user-route.ts';
import { entitiesParameters, entityParameters, membershipsParameters } from './entities-parameters.ts';
import { ENTITY_ROUTES, type EntityKind, OTHER_KIND } from './entity-kinds.ts';

/** The identifier of a user or an organization in a path. */
export const identifierParameter = z.string().meta({ description: 'The identifier, percent-encoded.' });

const filters = { properties: documentFilters('properties') };

/** Describes the list of users or organizations, one of them, and its memberships. */
export function entityPaths(kind: EntityKind, common: CommonDescription): PathDescriptions {
  const { path, idName, schema: name, tag, noun, exampleId } = ENTITY_ROUTES[kind];
  const entity = z
    .object({
      ...{ [idName]: z.string(), properties: jsonObjectSchema, firstSeenAt: timeSchema, lastSeenAt: timeSchema },
      propertiesSetAt: z.record(z.string(), timeSchema).optional().meta({
        description:
          'When each property was set last, also to the same value. Only of one record, with `propertyTimes=true`.',
      }),
    })
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
        summary: `All ${tag}, a page at a time`,
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
      ...(kind === 'user' && { delete: DELETE_USER }),
    },
    [`${path}/{${idName}}`]: {
      get: {
        ...common,
        codes: ['not_found', ...common.codes],
        operationId: `get${name}`,
        summary: `${noun[0]?.toUpperCase()}${noun.slice(1)} as it is now`,
        tag,
        requestParams: {
          path: z.object({ [idName]: identifierParameter }),
          query: querySchema(entityParameters, {}),
        },
        responses: {
          200: { description: 'As it is now.', content: { 'application/json': { schema: entity, example } } },
        },
      },
    },
    ...membershipPaths(kind, common),
  };
}

function membershipPaths(kind: EntityKind, common: CommonDescription): PathDescriptions {
  const { path, idName, schema: name, tag, noun } = ENTITY_ROUTES[kind];
  const other = ENTITY_ROUTES[OTHER_KIND[kind]];
  const membership = z
    .object({ [other.idName]: z.string(), firstSeenAt: timeSchema, lastSeenAt: timeSchema })
    .meta({ id: `${name}${other.schema}` });
  const example = {
    [other.idName]: other.exampleId,
    firstSeenAt: '2026-03-01T12:00:00.000Z',
    lastSeenAt: '2026-03-02T08:30:00.000Z',
  };
  const page = z
    .object({ limit: limitSchema, results: z.array(membership), nextCursor: nextCursorSchema })
    .meta({ id: `${name}${other.schema}Page` });
  return {
    [`${path}/{${idName}}${other.path}`]: {
      get: {
        ...common,
        codes: ['not_found', ...common.codes],
        operationId: `list${name}${other.schema}s`,
        summary: `The ${other.tag} of ${noun}, ordered by identifier, a page at a time`,
        tag,
        requestParams: {
          path: z.object({ [idName]: identifierParameter }),
          query: querySchema(membershipsParameters, {}),
        },
        responses: {
          200: {
            description: `A page of ${other.tag}, with the times of the first and the last submission that names both: of its events, or else of its receipt.`,
            content: {
              'application/json': { schema: page, example: { limit: 100, results: [example], nextCursor: null } },
            },
          },
        },
      },
    },
  };
}
