import type { QueryParameters } from '@sluice/shared/http/query-string';
import type { FastifyInstance } from 'fastify';
import type { Registry } from 'prom-client';
import { refuseParameters } from '../../records/filters/parameters.ts';
import { type ReadDependencies, registerRead } from '../../store/read-route.ts';
import { PipelineHistory } from './pipeline-history.ts';
import { type DeadLettersRow, deadLettersQuery, readServices } from './pipeline-state.ts';
import { ServiceMetrics } from './service-metrics.ts';

/** Sixty samples, with room to spare. */
const HISTORY = { pool: 'documents', bytes: 64 * 1_024 } as const;

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
  app.get<{ Querystring: QueryParameters }>(
    '/pipeline/history',
    { config: { admission: HISTORY } },
    async ({ query }) => {
      refuseParameters(query);
      return { samples: history.samples() };
    },
  );
  registerRead(app, {
    path: '/pipeline',
    parse: ({ query }) => refuseParameters(query),
    async respond(_, context, reply) {
      const query = { kind: 'dead_letters', pool: 'reports', graceMs: 0 } as const;
      const [row] = await queryRunner.all({ ...query, ...context, statement: deadLettersQuery });
      // After the query, whose slots say how many requests of a workspace get as far as this at once.
      const state = await services();
      const [waiting, lastDay, rejectedLastDay, newestMs] = row as unknown as DeadLettersRow;
      const newestAt = newestMs === 0 ? null : new Date(newestMs).toISOString();
      return await reply.send({ ...state, deadLetters: { waiting, lastDay, rejectedLastDay, newestAt } });
    },
  });
}
