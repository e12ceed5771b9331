import type { OperationDescription } from '@sluice/shared/http/openapi';
import type { FastifyInstance } from 'fastify';
import { z } from 'zod';
import { passDeletionOn, queryAsSent } from '../../http/http.ts';

/**
 * Registers `DELETE /users`: passes a deletion on to an ingest-api, since ingest-api alone writes to Kafka. A client that
 * has gone does not end it.
 *
 * @param ingestUrls addresses of ingest-apis, each of which can do it; without one the response is `501`
 */
export function registerDeleteUser(app: FastifyInstance, ingestUrls: readonly string[] = []): void {
  const admission = { pool: 'forwarded', bytes: 0 } as const;
  app.delete('/users', { config: { scope: 'delete', admission, describe } }, async (request, reply) => {
    const path = `/v1/users${queryAsSent(request)}`;
    return await passDeletionOn(ingestUrls, { request, reply }, 'DELETE /v1/users', { method: 'DELETE', path });
  });
}

/** Describes `DELETE /users`. */
function describe(): OperationDescription {
  return {
    operationId: 'deleteUser',
    summary: 'Delete a user, its properties and its events, or an anonymous visitor and its events',
    description:
      'Passed on to ingest-api, whose `DELETE /v1/users` it is: for pages that reach query-api alone, such as the console.',
    tag: 'users',
    scope: 'delete',
    codes: ['event_log_unavailable', 'deletions_not_available'],
    requestParams: {
      query: z.object({
        foreignId: z.string().optional().meta({ description: 'The user. A plus is `%2B`, and a space `%20`.' }),
        anonymousId: z.string().optional().meta({ description: 'Instead of `foreignId`: the anonymous visitor.' }),
        before: z
          .string()
          .optional()
          .meta({ format: 'date-time', description: 'Only what was accepted before this time. Default: now.' }),
      }),
    },
    responses: {
      202: {
        description: 'The event log has the deletion.',
        content: {
          'application/json': {
            schema: z
              .object({
                status: z.literal('accepted'),
                foreignId: z.string().optional(),
                anonymousId: z.string().optional(),
              })
              .meta({ id: 'AcceptedDeletion', description: 'With the identifier that the request has.' }),
            example: { status: 'accepted', foreignId: 'jane' },
          },
        },
      },
    },
  };
}
