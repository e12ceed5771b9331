import { z } from 'zod';

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
