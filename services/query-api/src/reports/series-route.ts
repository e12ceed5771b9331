import type { QueryParameters } from '@sluice/shared/http/query-string';
import type { FastifyInstance } from 'fastify';
import { whileConnected } from '../disconnection.ts';
import type { ReportDependencies } from './reports-route.ts';
import { parseSeriesRequest } from './series-parameters.ts';
import { SeriesReader } from './series-reader.ts';
import { seriesReport } from './series-report.ts';

/** Registers `GET /events/series`: numbers over time, by group. */
export function registerSeries(app: FastifyInstance, { config, queryRunner }: ReportDependencies): void {
  const reader = new SeriesReader(queryRunner, config);
  app.get('/events/series', async (request, reply) => {
    const { workspace } = request;
    const series = parseSeriesRequest(request.query as QueryParameters);
    return await whileConnected(reply, async (signal) => {
      const result = await reader.read(series, { workspace, requestId: request.id, signal });
      return await reply.send(seriesReport(series, result));
    });
  });
}
