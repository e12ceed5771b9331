import type { QueryParameters } from '@sluice/shared/http/query-string';
import type { FastifyInstance } from 'fastify';
import { contextOf } from '../clickhouse/query.ts';
import { whileConnected } from '../disconnection.ts';
import { sendJson } from '../json-response.ts';
import type { ReadDependencies } from '../read-dependencies.ts';
import { parseSeriesRequest } from './series-parameters.ts';
import { SeriesReader } from './series-reader.ts';
import { seriesJson } from './series-report.ts';

/** Registers `GET /events/series`: numbers over time, by group. */
export function registerSeries(app: FastifyInstance, { config, queryRunner }: ReadDependencies): void {
  const reader = new SeriesReader(queryRunner, config);
  app.get('/events/series', async (request, reply) => {
    const series = parseSeriesRequest(request.query as QueryParameters);
    return await whileConnected(reply, async (signal) => {
      const result = await reader.read(series, contextOf(request, signal));
      return await sendJson(reply, seriesJson(series, result));
    });
  });
}
