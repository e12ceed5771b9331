import type { QueryParameters } from '@sluice/shared/http/query-string';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { StreamHubs } from './stream-hubs.ts';
import { LAST_EVENT_ID, parseStreamRequest } from './stream-parameters.ts';

/**
 * Registers `GET /events/stream`: events of a workspace as they become visible, as server-sent events.
 *
 * @param isAllowed whether the client may still read its workspace
 */
export function registerStream(
  app: FastifyInstance,
  streams: StreamHubs,
  isAllowed: (request: FastifyRequest) => boolean,
): void {
  app.get('/events/stream', { config: { endless: true, admission: 'queries' } }, async (request, reply) => {
    const lastEventId = request.headers[LAST_EVENT_ID]?.toString();
    const { after, ...listener } = parseStreamRequest(request.query as QueryParameters, lastEventId, request.workspace);
    // A response without a body ends at once.
    if (request.method === 'HEAD') return await withHeaders(reply).send('');
    const { memory } = request;
    const unsentBytes = () => reply.raw.writableLength;
    const { body } = await streams.open(
      { ...listener, memory, unsentBytes, isAllowed: () => isAllowed(request) },
      after,
    );
    // It may have left while the position was looked up.
    if (reply.raw.destroyed) body.destroy();
    return await withHeaders(reply).send(body);
  });
}

function withHeaders(reply: FastifyReply): FastifyReply {
  // nginx would keep events until it has some kilobytes of them.
  return reply.type('text/event-stream').header('x-accel-buffering', 'no');
}
