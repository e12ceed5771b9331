import type { QueryParameters } from '@sluice/shared/http/query-string';
import type { FastifyInstance } from 'fastify';
import { whileConnected } from '../disconnection.ts';
import { parseFunnelRequest } from './funnel-parameters.ts';
import { funnelQuery } from './funnel-query.ts';
import { funnelReport } from './funnel-report.ts';
import { collectingSettings, reportRows } from './report-runner.ts';
import type { ReportDependencies } from './reports-route.ts';

/** Registers `GET /events/funnel`: how many get from one event to the next. */
export function registerFunnel(
  app: FastifyInstance,
  { config, queryRunner, hiddenCondition }: ReportDependencies,
): void {
  const settings = collectingSettings(config);
  app.get('/events/funnel', async (request, reply) => {
    const { workspace } = request;
    const funnel = parseFunnelRequest(request.query as QueryParameters);
    return await whileConnected(reply, async (signal) => {
      const hidden = await hiddenCondition(workspace);
      const query = { ...funnelQuery(funnel, hidden), workspace, requestId: request.id, signal, settings };
      return await reply.send(funnelReport(funnel, await reportRows(queryRunner, { kind: 'funnel', ...query })));
    });
  });
}
