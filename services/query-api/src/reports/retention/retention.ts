import type { FastifyInstance } from 'fastify';
import type { Query } from '../../clickhouse/query.ts';
import type { Sql } from '../../clickhouse/sql.ts';
import { sendJson } from '../../json-response.ts';
import { type ReadDependencies, registerRead } from '../../read-route.ts';
import { collectingSettings, readReport } from '../report-runner.ts';
import { parseRetentionRequest } from './retention-parameters.ts';
import { retentionQuery } from './retention-query.ts';
import { Returns, retentionJson } from './retention-report.ts';

/** Registers `GET /events/retention`: how many users come back, and when. */
export function registerRetention(app: FastifyInstance, { config, queryRunner }: ReadDependencies): void {
  const settings = collectingSettings(config);
  registerRead(app, {
    path: '/events/retention',
    parse: ({ query }) => parseRetentionRequest(query),
    async respond(request, context, reply) {
      const hiding = (hidden: Sql | undefined) => retentionQuery(request, hidden);
      const query: Query = { kind: 'retention', hiding, settings, ...context };
      const returns = new Returns(request, context.memory);
      const isWhole = await readReport(queryRunner, query, (row) => returns.add(row));
      return await sendJson(reply, retentionJson(request, isWhole ? returns : undefined));
    },
  });
}
