import { Problem } from '@sluice/shared/http/problem';
import type { QueryParameters } from '@sluice/shared/http/query-string';
import { untilDisconnected } from '@sluice/shared/http/response-end';
import type { FastifyInstance } from 'fastify';
import { z } from 'zod';
import type { Service } from '../upstream/service.ts';
import { queryParameters } from './event-parameters.ts';
import { shownOf } from './shown-event.ts';

const page = z.object({ limit: z.int(), offset: z.int(), total: z.int().nullable() });

/** Registers `GET /events`: a page of events with the exact total. */
export function registerGetEvents(app: FastifyInstance, query: Service): void {
  app.get('/events', async (request, reply) => {
    const parameters = queryParameters(request.query as QueryParameters);
    const { items, others } = await untilDisconnected(reply, (signal) =>
      query.list({ method: 'GET', path: `/events?${parameters}`, of: request, signal }, 'results', shownOf),
    );
    const { limit, offset, total } = page.parse(others);
    if (total === null) {
      throw new Problem('query_too_expensive', 'There are too many events to count in time; narrow the query down.');
    }
    reply.type('application/json; charset=utf-8');
    const rest = `,"limit":${limit},"offset":${offset},"total":${total}}`;
    return await reply.send(Buffer.concat([Buffer.from('{"results":'), items, Buffer.from(rest)]));
  });
}
