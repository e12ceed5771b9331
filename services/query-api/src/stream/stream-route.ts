import type { OperationDescription } from '@sluice/shared/http/openapi';
import type { QueryParameters } from '@sluice/shared/http/query-string';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import type { QueryConfig } from '../config.ts';
import { type CommonDescription, RESUMABLE_DAYS } from '../http/http.ts';
import { EVENT_EXAMPLE, filtersOfEvents, querySchema } from '../records/records.ts';
import type { StreamHubs } from './stream-hubs.ts';
import { LAST_EVENT_ID, parseStreamRequest, streamParameters } from './stream-parameters.ts';
import { encodePosition } from './stream-position.ts';

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
  app.get(
    '/events/stream',
    { config: { endless: true, admission: 'queries', describe: describeStream } },
    async (request, reply) => {
      const lastEventId = request.headers[LAST_EVENT_ID]?.toString();
      const { workspace } = request;
      const given = request.query as QueryParameters;
      const query = given['identity'] ? given : { ...given, identity: [await streams.defaultIdentity(workspace)] };
      const { after, ...listener } = parseStreamRequest(query, lastEventId, workspace);
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
    },
  );
}

function withHeaders(reply: FastifyReply): FastifyReply {
  // nginx would keep events until it has some kilobytes of them.
  return reply.type('text/event-stream').header('x-accel-buffering', 'no');
}

const description = (config: Pick<QueryConfig, 'STREAM_LISTENERS_PER_WORKSPACE'>) => `
Server-sent events, until the client leaves or the service stops. Each message is an event of \`GET /events\` as JSON, with
its stream position as \`id\`. All filters have to match; there are no dates. Where it sees persons, an event is of whom its visitor
belonged to when it was sent: what is linked later is not sent again. The stream follows the order of storage: an event
with an old timestamp that is stored now is sent now. A client that connects again with the last \`id\`, in the header
\`Last-Event-ID\` or as \`after\`, gets each later event once, also after restarts. Without it the stream begins now.

Every 15 seconds there is a comment, with the \`id\` up to which everything was sent. A client that reads slowly is sent the
same events later; one that reads nothing for a minute is disconnected. A position can be resumed for ${RESUMABLE_DAYS} days.
If its filters need more memory, or read more, than a query may, the stream ends with a message \`event: problem\` that has the
\`code\` and the \`detail\`. While ClickHouse is too slow for them, it waits, and goes on.
When the stream goes on at another ClickHouse server, there is a message \`event: moved\` with the names of both (\`from\`, \`to\`)
and the time \`since\` which events may come again: they have the same \`uuid\`.
A workspace can have ${config.STREAM_LISTENERS_PER_WORKSPACE} stream clients at a time.`;

/** Describes `GET /events/stream`. */
function describeStream(common: CommonDescription, config: QueryConfig): OperationDescription {
  const id = encodePosition(
    new Map([[0, { block: 4711, timestampMs: Date.UTC(2026, 2, 1, 12), uuid: String(EVENT_EXAMPLE['uuid']) }]]),
    Date.UTC(2026, 2, 1, 12),
  );

  return {
    ...common,
    codes: ['position_lost', 'too_many_listeners', 'store_unavailable', 'overloaded'],
    operationId: 'streamEvents',
    summary: 'Events as they become visible',
    description: description(config).trim(),
    tag: 'events',
    requestParams: {
      query: querySchema(streamParameters, filtersOfEvents()),
      header: z.object({
        'Last-Event-ID': z.string().optional().meta({
          description: 'The last `id` that was received; the stream goes on after it.',
          example: id,
        }),
      }),
    },
    responses: {
      200: {
        description: 'Messages, one for each event.',
        content: {
          'text/event-stream': {
            schema: z.string(),
            example: `retry: 1000\nid: ${id}\n\nid: ${id}\ndata: ${JSON.stringify(EVENT_EXAMPLE)}\n\n`,
          },
        },
      },
    },
  };
}
