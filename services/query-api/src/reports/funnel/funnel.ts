import type { FastifyInstance } from 'fastify';
import type { Sql } from '../../clickhouse/sql.ts';
import { type ReadDependencies, registerRead } from '../../read-route.ts';
import { collectingSettings, reportRows } from '../report-runner.ts';
import { parseFunnelRequest } from './funnel-parameters.ts';
import { funnelQuery } from './funnel-query.ts';
import { funnelReport } from './funnel-report.ts';

/** Registers `GET /events/funnel`: how many get from one event to the next. */
export function registerFunnel(app: FastifyInstance, { config, queryRunner }: ReadDependencies): void {
  const settings = collectingSettings(config);
  registerRead(app, {
    path: '/events/funnel',
    parse: ({ query }) => parseFunnelRequest(query),
    async respond(request, context, reply) {
      const hiding = (hidden: Sql | undefined) => funnelQuery(request, hidden);
      const rows = await reportRows(queryRunner, { kind: 'funnel', hiding, settings, ...context });
      return await reply.send(funnelReport(request, rows));
    },
  });
}
