import type { QueryParameters } from '@sluice/shared/http/query-string';
import type { FastifyInstance } from 'fastify';
import type { Registry } from 'prom-client';
import { refuseParameters } from '../filters/parameters.ts';
import { type ReadDependencies, registerRead } from '../read-route.ts';
import { PipelineHistory } from './pipeline-history.ts';
import { type DeadLettersRow, deadLettersQuery, readServices } from './pipeline-state.ts';
import { ServiceMetrics } from './service-metrics.ts';

/**
 * Registers `GET /pipeline`: the dead letters of the workspace, and what the metrics of the services say; and how the latter were
 * over the last hour.
 */
export function registerPipeline(
  app: FastifyInstance,
  { config, queryRunner }: ReadDependencies,
  registry: Registry,
): void {
  const metrics = new ServiceMetrics();
  const services = () => readServices(config, metrics, () => registry.metrics());
  const history = new PipelineHistory(services);
  if (config.INGEST_URLS || config.WRITER_URL) {
    app.addHook('onReady', async () => history.start());
    app.addHook('preClose', () => history.stop());
  }
  app.get<{ Querystring: QueryParameters }>('/pipeline/history', async ({ query }) => {
    refuseParameters(query);
    return { samples: history.samples() };
  });
  registerRead(app, {
    path: '/pipeline',
    parse: ({ query }) => refuseParameters(query),
    async respond(_, context, reply) {
      const [state, [row]] = await Promise.all([
        services(),
        queryRunner.all({ kind: 'dead_letters', pool: 'reports', graceMs: 0, ...context, statement: deadLettersQuery }),
      ]);
      const [waiting, lastDay, newestMs] = row as unknown as DeadLettersRow;
      const newestAt = newestMs === 0 ? null : new Date(newestMs).toISOString();
      return await reply.send({ ...state, deadLetters: { waiting, lastDay, newestAt } });
    },
  });
}
