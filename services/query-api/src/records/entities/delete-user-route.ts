import { Problem, RETRY_UNAVAILABLE_SECONDS } from '@sluice/shared/http/problem';
import type { FastifyInstance } from 'fastify';
import { z } from 'zod';

/** How long ingest-api may take, in milliseconds: longer than it waits for Kafka. */
const TIMEOUT_MS = 30_000;

/** Headers of the response that the client gets as they came. */
const PASSED_ON = ['content-type', 'retry-after'] as const;

/**
 * Registers `DELETE /users`: passes a deletion on to an ingest-api, since ingest-api alone writes to Kafka. A client that
 * has gone does not end it.
 *
 * @param ingestUrls addresses of ingest-apis, each of which can do it; without one the response is `501`
 */
export function registerDeleteUser(app: FastifyInstance, ingestUrls: readonly string[] = []): void {
  const [ingestUrl] = ingestUrls;
  const admission = { pool: 'forwarded', bytes: 0 } as const;
  app.delete('/users', { config: { scope: 'delete', admission } }, async (request, reply) => {
    if (ingestUrl === undefined) {
      throw new Problem('deletions_not_available', 'query-api knows no ingest-api: send DELETE /v1/users to that.');
    }
    const [, query = ''] = request.url.split(/\?(.*)/s);
    const response = await fetch(`${ingestUrl.replace(/\/+$/, '')}/v1/users?${query}`, {
      method: 'DELETE',
      headers: { authorization: request.headers.authorization ?? '', 'x-request-id': request.id },
      redirect: 'error',
      signal: AbortSignal.timeout(TIMEOUT_MS),
    }).catch((cause: unknown) => {
      throw new Problem('event_log_unavailable', 'ingest-api does not respond; the deletion may be in force already.', {
        retryAfter: RETRY_UNAVAILABLE_SECONDS,
        cause,
      });
    });
    for (const name of PASSED_ON) {
      const value = response.headers.get(name);
      if (value !== null) reply.header(name, value);
    }
    reply.code(response.status);
    return await reply.send(Buffer.from(await response.arrayBuffer()));
  });
}

/** Describes `DELETE /users`. */
export const DELETE_USER = {
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
} as const;
