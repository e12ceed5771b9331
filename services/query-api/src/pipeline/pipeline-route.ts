import type { FastifyInstance } from 'fastify';
import type { Registry } from 'prom-client';
import { refuseParameters } from '../filters/parameters.ts';
import { type ReadDependencies, registerRead } from '../read-route.ts';
import { type DeadLettersRow, deadLettersQuery, readServices } from './pipeline-state.ts';
import { ServiceMetrics } from './service-metrics.ts';

/** Registers `GET /pipeline`: the dead letters of the workspace, and what the metrics of the services say. */
export function registerPipeline(
  app: FastifyInstance,
  { config, queryRunner }: ReadDependencies,
  registry: Registry,
): void {
  const metrics = new ServiceMetrics();
  registerRead(app, {
    path: '/pipeline',
    parse: ({ query }) => refuseParameters(query),
    async respond(_, context, reply) {
      const [services, [row]] = await Promise.all([
        readServices(config, metrics, () => registry.metrics()),
        queryRunner.all({ kind: 'dead_letters', pool: 'reports', graceMs: 0, ...context, statement: deadLettersQuery }),
      ]);
      const [waiting, lastDay, newestMs] = row as unknown as DeadLettersRow;
      const newestAt = newestMs === 0 ? null : new Date(newestMs).toISOString();
      return await reply.send({ ...services, deadLetters: { waiting, lastDay, newestAt } });
    },
  });
}
