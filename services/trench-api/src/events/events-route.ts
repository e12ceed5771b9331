import { ERRORS_MAX, type InputError, Problem } from '@sluice/shared/http/problem';
import type { QueryParameters } from '@sluice/shared/http/query-string';
import { untilDisconnected } from '@sluice/shared/http/response-end';
import { InvalidCall } from '@sluice/submissions/calls/call';
import type { FastifyInstance } from 'fastify';
import { z } from 'zod';
import { listOf } from '../http/body-list.ts';
import type { Service } from '../upstream/service.ts';
import { type EventCall, type EventCallOptions, eventCall } from './event-call.ts';
import { queryParameters } from './event-parameters.ts';
import { shownOf } from './shown-event.ts';

export interface PostEventsOptions extends EventCallOptions {
  readonly ingest: Service;
}

const batchResponse = z.object({
  rejected: z.array(z.object({ index: z.int(), message: z.string() })).optional(),
  rejectedCount: z.int().default(0),
});

/** Registers `POST /events`: `201` once Kafka has the events. */
export function registerPostEvents(app: FastifyInstance, { ingest, ...options }: PostEventsOptions): void {
  app.post('/events', async (request, reply) => {
    const calls = callsOf(listOf(request.body, 'events'), options);
    const body = `{"batch":[${calls.map(({ json }) => json).join(',')}]}`;
    const response = batchResponse.parse(await ingest.send({ method: 'POST', path: '/v1/batch', body, of: request }));
    const { rejected = [], rejectedCount } = response;
    if (rejected.length > 0) {
      const others = calls.length - rejectedCount;
      throw refusal(
        rejected.map(({ index, message }) => errorOf(index, message)),
        rejectedCount,
        others > 0 ? ` The other ${others} events are stored.` : '',
      );
    }
    reply.code(201).type('application/json; charset=utf-8');
    const { length } = calls;
    return await reply.send(
      JSON.stringify({ results: calls.map(({ shown }) => shown), limit: length, offset: 0, total: length }),
    );
  });
}

/** @throws {Problem} `invalid_request` that names every wrong event */
function callsOf(events: readonly unknown[], options: EventCallOptions): readonly EventCall[] {
  const calls: EventCall[] = [];
  const errors: InputError[] = [];
  for (const [index, event] of events.entries()) {
    try {
      calls.push(eventCall(event, options));
    } catch (error) {
      if (!(error instanceof InvalidCall)) throw error;
      errors.push(errorOf(index, error.message));
    }
  }
  if (errors.length > 0) throw refusal(errors, errors.length, events.length > errors.length ? ' None is stored.' : '');
  return calls;
}

function errorOf(index: number, message: string): InputError {
  return { path: `events.${index}`, code: 'invalid_event', message };
}

/** Trench's client shows the message alone, so that it has the first error. */
function refusal(errors: readonly InputError[], count: number, addition: string): Problem {
  const [first] = errors;
  const more = count > 1 ? ` So cannot ${count - 1} others.` : '';
  const detail = `${first?.path} cannot be taken: ${first?.message}${more}${addition}`;
  return new Problem('invalid_request', detail, { errors: errors.slice(0, ERRORS_MAX) });
}

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
