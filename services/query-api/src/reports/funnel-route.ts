import type { QueryParameters } from '@sluice/shared/http/query-string';
import type { FastifyInstance } from 'fastify';
import { contextOf } from '../clickhouse/query.ts';
import type { Sql } from '../clickhouse/sql.ts';
import { whileConnected } from '../disconnection.ts';
import type { ReadDependencies } from '../read-dependencies.ts';
import { parseFunnelRequest } from './funnel-parameters.ts';
import { funnelQuery } from './funnel-query.ts';
import { funnelReport } from './funnel-report.ts';
import { collectingSettings, reportRows } from './report-runner.ts';

/** Registers `GET /events/funnel`: how many get from one event to the next. */
export function registerFunnel(app: FastifyInstance, { config, queryRunner }: ReadDependencies): void {
  const settings = collectingSettings(config);
  app.get('/events/funnel', async (request, reply) => {
    const funnel = parseFunnelRequest(request.query as QueryParameters);
    return await whileConnected(reply, async (signal) => {
      const hiding = (hidden: Sql | undefined) => funnelQuery(funnel, hidden);
      const query = { hiding, settings, ...contextOf(request, signal) };
      return await reply.send(funnelReport(funnel, await reportRows(queryRunner, { kind: 'funnel', ...query })));
    });
  });
}
