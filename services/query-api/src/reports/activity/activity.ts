import type { FastifyInstance } from 'fastify';
import { parseEntityRequest } from '../../entities/entities-parameters.ts';
import { ENTITY_KINDS, ENTITY_ROUTES, noSuchEntity } from '../../entities/entity-kinds.ts';
import { type ReadDependencies, registerRead } from '../../read-route.ts';
import { readActivity } from './activity-reader.ts';

/** Registers `GET /users/{foreignId}/activity`, and the same for organizations. */
export function registerActivities(app: FastifyInstance, { config, queryRunner }: ReadDependencies): void {
  for (const kind of ENTITY_KINDS) {
    registerRead(app, {
      path: `${ENTITY_ROUTES[kind].path}/:id/activity`,
      parse: parseEntityRequest,
      async respond(id, context, reply) {
        const options = { nowMs: Date.now(), timeoutMs: config.QUERY_TIMEOUT_MS };
        const activity = await readActivity(queryRunner, { kind, id }, options, context);
        if (!activity) throw noSuchEntity(kind);
        return await reply.send(activity);
      },
    });
  }
}
