import type { QueryParameters } from '@sluice/shared/http/query-string';
import type { FastifyInstance } from 'fastify';
import type { Sql } from '../clickhouse/sql.ts';
import { whileConnected } from '../disconnection.ts';
import { collectingSettings, reportRows } from './report-runner.ts';
import type { ReportDependencies } from './reports-route.ts';
import { parseRetentionRequest } from './retention-parameters.ts';
import { retentionQuery } from './retention-query.ts';
import { retentionReport } from './retention-report.ts';

/** Registers `GET /events/retention`: how many users come back, and when. */
export function registerRetention(app: FastifyInstance, { config, queryRunner }: ReportDependencies): void {
  const settings = collectingSettings(config);
  app.get('/events/retention', async (request, reply) => {
    const { workspace } = request;
    const retention = parseRetentionRequest(request.query as QueryParameters);
    return await whileConnected(reply, async (signal) => {
      const hiding = (hidden: Sql | undefined) => retentionQuery(retention, hidden);
      const query = { hiding, workspace, requestId: request.id, signal, settings };
      const rows = await reportRows(queryRunner, { kind: 'retention', ...query });
      return await reply.send(retentionReport(retention, rows));
    });
  });
}
