import type { QueryParameters } from '@sluice/shared/http/query-string';
import type { FastifyInstance } from 'fastify';
import { contextOf, type Query } from '../clickhouse/query.ts';
import type { Sql } from '../clickhouse/sql.ts';
import { whileConnected } from '../disconnection.ts';
import { sendJson } from '../json-response.ts';
import type { ReadDependencies } from '../read-dependencies.ts';
import { collectingSettings, readReport } from './report-runner.ts';
import { parseRetentionRequest } from './retention-parameters.ts';
import { retentionQuery } from './retention-query.ts';
import { Returns, retentionJson } from './retention-report.ts';

/** Registers `GET /events/retention`: how many users come back, and when. */
export function registerRetention(app: FastifyInstance, { config, queryRunner }: ReadDependencies): void {
  const settings = collectingSettings(config);
  app.get('/events/retention', async (request, reply) => {
    const retention = parseRetentionRequest(request.query as QueryParameters);
    return await whileConnected(reply, async (signal) => {
      const hiding = (hidden: Sql | undefined) => retentionQuery(retention, hidden);
      const query: Query = { kind: 'retention', hiding, settings, ...contextOf(request, signal) };
      const returns = new Returns(retention, request.memory);
      const isWhole = await readReport(queryRunner, query, (row) => returns.add(row));
      return await sendJson(reply, retentionJson(retention, isWhole ? returns : undefined));
    });
  });
}
