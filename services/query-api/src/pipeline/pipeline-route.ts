import type { FastifyInstance } from 'fastify';
import { refuseParameters } from '../filters/parameters.ts';
import { type ReadDependencies, registerRead } from '../read-route.ts';
import { type DeadLettersRow, deadLettersQuery, readServices } from './pipeline-state.ts';
import { createMetricsReader } from './service-metrics.ts';

/** Registers `GET /pipeline`: the dead letters of the workspace, and what the other services have accepted and not stored. */
export function registerPipeline(app: FastifyInstance, { config, queryRunner }: ReadDependencies): void {
  const readMetrics = createMetricsReader();
  registerRead(app, {
    path: '/pipeline',
    parse: ({ query }) => refuseParameters(query),
    async respond(_, context, reply) {
      const [services, [row]] = await Promise.all([
        readServices(config, readMetrics),
        queryRunner.all({ kind: 'dead_letters', pool: 'reports', graceMs: 0, ...context, statement: deadLettersQuery }),
      ]);
      const [waiting, lastDay, newestMs] = row as unknown as DeadLettersRow;
      const newestAt = newestMs === 0 ? null : new Date(newestMs).toISOString();
      return await reply.send({ ...services, deadLetters: { waiting, lastDay, newestAt } });
    },
  });
}
