import { Problem } from '@sluice/shared/http/problem';
import type { QueryParameters } from '@sluice/shared/http/query-string';
import type { FastifyInstance } from 'fastify';
import { z } from 'zod';
import type { Service } from '../upstream/service.ts';
import { whileConnected } from '../while-connected.ts';
import { queryParameters } from './event-parameters.ts';
import { type StoredEvent, shownOf } from './shown-event.ts';

const page = z.object({
  limit: z.int(),
  offset: z.int(),
  results: z.array(z.custom<StoredEvent>()),
  total: z.int().nullable(),
});

/** Registers `GET /events`: a page of events with the exact total. */
export function registerGetEvents(app: FastifyInstance, query: Service): void {
  app.get('/events', async (request, reply) => {
    const parameters = queryParameters(request.query as QueryParameters);
    const response = await whileConnected(reply, (signal) =>
      query.send({ method: 'GET', path: `/events?${parameters}`, of: request, signal }),
    );
    const { results, limit, offset, total } = page.parse(response);
    if (total === null) {
      throw new Problem('query_too_expensive', 'There are too many events to count in time; narrow the query down.');
    }
    reply.type('application/json; charset=utf-8');
    return await reply.send(JSON.stringify({ results: results.map(shownOf), limit, offset, total }));
  });
}
