import type { QueryParameters } from '@sluice/shared/http/query-string';
import type { FastifyInstance } from 'fastify';
import { contextOf } from '../clickhouse/query.ts';
import { whileConnected } from '../disconnection.ts';
import { ENTITY_KINDS, ENTITY_ROUTES, noSuchEntity } from '../entities/entity-kinds.ts';
import { refuseParameters } from '../filters/parameters.ts';
import type { ReadDependencies } from '../read-dependencies.ts';
import { readActivity } from './activity.ts';

/** Registers `GET /users/{foreignId}/activity`, and the same for organizations. */
export function registerActivities(app: FastifyInstance, { config, queryRunner }: ReadDependencies): void {
  for (const kind of ENTITY_KINDS) {
    app.get(`${ENTITY_ROUTES[kind].path}/:id/activity`, async (request, reply) => {
      refuseParameters(request.query as QueryParameters);
      const { id } = request.params as { id: string };
      return await whileConnected(reply, async (signal) => {
        const options = { nowMs: Date.now(), timeoutMs: config.QUERY_TIMEOUT_MS };
        const activity = await readActivity(queryRunner, { kind, id }, options, contextOf(request, signal));
        if (!activity) throw noSuchEntity(kind);
        return await reply.send(activity);
      });
    });
  }
}
