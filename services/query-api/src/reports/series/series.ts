import type { FastifyInstance } from 'fastify';
import { sendJson } from '../../json-response.ts';
import { type ReadDependencies, registerRead } from '../../read-route.ts';
import { parseSeriesRequest } from './series-parameters.ts';
import { SeriesReader } from './series-reader.ts';
import { seriesJson } from './series-report.ts';

/** Registers `GET /events/series`: numbers over time, by group. */
export function registerSeries(app: FastifyInstance, { config, queryRunner }: ReadDependencies): void {
  const reader = new SeriesReader(queryRunner, config);
  registerRead(app, {
    path: '/events/series',
    parse: ({ query }) => parseSeriesRequest(query),
    async respond(request, context, reply) {
      return await sendJson(reply, seriesJson(request, await reader.read(request, context)));
    },
  });
}
