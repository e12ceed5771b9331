import type { PathDescriptions } from '@sluice/shared/http/openapi';
import { z } from 'zod';
import { type CommonDescription, timeSchema } from '../../http/openapi-schemas.ts';
import { identifierParameter } from '../../records/entities/entities-openapi.ts';
import { ENTITY_KINDS, ENTITY_ROUTES, type EntityKind } from '../../records/entities/entity-kinds.ts';
import { ACTIVITY_DAYS, ACTIVITY_NAMES_MAX } from './activity.ts';

const activity = z
  .object({
    days: z
      .array(
        z.object({ date: z.string().meta({ format: 'date', description: 'A day in UTC.' }), count: z.int().min(0) }),
      )
      .length(ACTIVITY_DAYS)
      .meta({ description: 'The oldest first; the last one is today.' }),
    events: z
      .array(z.object({ event: z.string(), count: z.int().min(1) }))
      .max(ACTIVITY_NAMES_MAX)
      .meta({ description: 'The most frequent names of these days, in descending order.' }),
    firstSeenAt: timeSchema,
    lastSeenAt: timeSchema,
  })
  .meta({ id: 'Activity' });

const LAST_DAY_MS = Date.UTC(2026, 2, 1);

const example = {
  days: Array.from({ length: ACTIVITY_DAYS }, (_, index) => ({
    date: new Date(LAST_DAY_MS - (ACTIVITY_DAYS - 1 - index) * 86_400_000).toISOString().slice(0, 10),
    count: index % 3,
  })),
  events: [{ event: 'signed_in', count: 30 }],
  firstSeenAt: '2026-01-01T09:00:00.000Z',
  lastSeenAt: '2026-03-01T12:00:00.000Z',
};

/** Describes `GET /users/{foreignId}/activity`, and the same for organizations. */
export function activityPaths(common: CommonDescription): PathDescriptions {
  return Object.assign({}, ...ENTITY_KINDS.map((kind) => activityPath(kind, common)));
}

function activityPath(kind: EntityKind, common: CommonDescription): PathDescriptions {
  const { path, idName, schema: name, tag, noun } = ENTITY_ROUTES[kind];
  return {
    [`${path}/{${idName}}/activity`]: {
      get: {
        ...common,
        codes: ['not_found', ...common.codes],
        operationId: `get${name}Activity`,
        summary: `What ${noun} did in the last ${ACTIVITY_DAYS} days`,
        tag,
        requestParams: { path: z.object({ [idName]: identifierParameter }) },
        responses: {
          200: {
            description: 'Its events by day and by name.',
            content: { 'application/json': { schema: activity, example } },
          },
        },
      },
    },
  };
}
