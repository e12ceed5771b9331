import type { PathDescriptions } from '@sluice/shared/http/openapi';
import { z } from 'zod';
import type { QueryConfig } from '../config.ts';
import { RESUMABLE_DAYS } from '../http/limits.ts';
import type { CommonDescription } from '../http/openapi-schemas.ts';
import { eventExample, eventFilters } from '../records/events/events-openapi.ts';
import { querySchema } from '../records/filters/filters-openapi.ts';
import { streamParameters } from './stream-parameters.ts';
import { encodePosition } from './stream-position.ts';

const ID_EXAMPLE = encodePosition(
  new Map([[0, { block: 4711, timestampMs: Date.UTC(2026, 2, 1, 12), uuid: String(eventExample['uuid']) }]]),
  Date.UTC(2026, 2, 1, 12),
);

const description = (config: Pick<QueryConfig, 'STREAM_LISTENERS_PER_WORKSPACE'>) => `
Server-sent events, until the client leaves or the service stops. Each message is an event of \`GET /events\` as JSON, with
its stream position as \`id\`. All filters have to match; there are no dates. The stream follows the order of storage: an event
with an old timestamp that is stored now is sent now. A client that connects again with the last \`id\`, in the header
\`Last-Event-ID\` or as \`after\`, gets each later event once, also after restarts. Without it the stream begins now.

Every 15 seconds there is a comment, with the \`id\` up to which everything was sent. A client that reads slowly is sent the
same events later; one that reads nothing for a minute is disconnected. A position can be resumed for ${RESUMABLE_DAYS} days.
If its filters are too expensive, the stream ends with a message \`event: problem\` that has the \`code\` and the \`detail\`.
When the stream goes on at another ClickHouse server, there is a message \`event: moved\` with the names of both (\`from\`, \`to\`)
and the time \`since\` which events may come again: they have the same \`uuid\`.
A workspace can have ${config.STREAM_LISTENERS_PER_WORKSPACE} stream clients at a time.`;

/** Describes `GET /events/stream`. */
export function streamPaths(common: CommonDescription, config: QueryConfig): PathDescriptions {
  return {
    '/events/stream': {
      get: {
        ...common,
        codes: ['position_lost', 'too_many_listeners', 'store_unavailable', 'overloaded'],
        operationId: 'streamEvents',
        summary: 'Events as they become visible',
        description: description(config).trim(),
        tag: 'events',
        requestParams: {
          query: querySchema(streamParameters, eventFilters),
          header: z.object({
            'Last-Event-ID': z.string().optional().meta({
              description: 'The last `id` that was received; the stream goes on after it.',
              example: ID_EXAMPLE,
            }),
          }),
        },
        responses: {
          200: {
            description: 'Messages, one for each event.',
            content: {
              'text/event-stream': {
                schema: z.string(),
                example: `retry: 1000\nid: ${ID_EXAMPLE}\n\nid: ${ID_EXAMPLE}\ndata: ${JSON.stringify(eventExample)}\n\n`,
              },
            },
          },
        },
      },
    },
  };
}
