import type { OperationDescription, PathDescriptions } from '@sluice/shared/http/openapi';
import { z } from 'zod';
import type { QueryConfig } from '../config.ts';
import type { CommonDescription } from '../http/openapi-schemas.ts';
import { pageMembers, wholeListParameters } from '../records/filters/whole-lists.ts';
import { PAUSE_REASONS } from './webhook.ts';
import { newWebhookSchema, webhookChangeSchema } from './webhook-request.ts';
import { replayParameters } from './webhooks-route.ts';

const time = z.iso.datetime();

const webhookSchema = z
  .object({
    id: z.uuid(),
    url: z.string(),
    filter: z.record(z.string(), z.string()),
    batched: z.boolean(),
    state: z.enum(['active', 'paused']),
    pausedBecause: z.enum(PAUSE_REASONS).nullable().meta({
      description:
        '`client`: by a request. `gone`: the receiver answered 410. `failing`: its attempts failed for too long. `position_lost`: the event store has other data than before; use replay. `filter`: its filter cannot be read any more.',
    }),
    stateSince: time,
    failedAttempts: z.int().min(0).meta({ description: 'Attempts that failed since the last delivery.' }),
    failingSince: time.nullable(),
    previousSecretUntil: time
      .nullable()
      .meta({ description: 'Until when the secret before the last rotation signs as well.' }),
    createdAt: time,
  })
  .meta({ id: 'Webhook' });

const secret = z.string().meta({
  description: 'The key of signatures. It is shown only in this response.',
  example: 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYqr',
});
const withSecretSchema = webhookSchema.extend({ secret }).meta({ id: 'WebhookWithSecret' });

const outcome = {
  id: z.string().meta({ description: 'The header `webhook-id`: the same in all attempts of a delivery.' }),
  status: z.int().nullable().meta({ description: 'The status of the response, if there was one.' }),
  durationMs: z.int().min(0),
  error: z.string().nullable(),
};

const testSchema = z.object({ ...outcome, delivered: z.boolean() }).meta({ id: 'WebhookTest' });

const deliverySchema = z
  .object({
    ...outcome,
    at: time,
    type: z.enum(['event', 'events', 'test']),
    events: z.int().min(0),
    attempt: z.int().min(1),
  })
  .meta({ id: 'WebhookDelivery' });

const idParameter = z.object({ id: z.string().meta({ description: 'The id of the webhook.' }) });

const json = (description: string, schema: z.ZodType) => ({
  description,
  content: { 'application/json': { schema } },
});

const BODY_CODES = ['malformed_json', 'body_too_large', 'unsupported_media_type'] as const;

const DELIVERY = `A delivery is a \`POST\` of \`{"type": "event", "timestamp": …, "data": EVENT}\`, or of \`"events"\` with an array of events, signed as
Standard Webhooks says. Events come at least once, in the order of storage. Any 2xx within the time limit is a delivery;
otherwise it is sent again, later and later, and no later event is sent before.`;

type Given = Pick<OperationDescription, 'responses'> & Partial<OperationDescription>;

/** Adds to an operation of one webhook what all of them have. */
function one(given: Given, codes: OperationDescription['codes'] = []): Given {
  return {
    ...given,
    requestParams: { path: idParameter, ...given.requestParams },
    codes: ['not_found', ...codes],
  };
}

const webhook = { 200: json('The webhook.', webhookSchema) };
const body = (schema: z.ZodType) => ({ required: true, content: { 'application/json': { schema } } });

/** Describes the routes of webhooks. */
export function webhookPaths(common: CommonDescription, config: QueryConfig): PathDescriptions {
  const operation = (operationId: string, summary: string, given: Given): OperationDescription => ({
    ...{ ...common, scope: 'webhooks', keyOptional: false, tag: 'webhooks', operationId, summary },
    ...given,
    codes: ['webhooks_not_available', 'store_unavailable', 'overloaded', ...(given.codes ?? [])],
  });
  return {
    '/webhooks': {
      get: operation('listWebhooks', 'Webhooks of the workspace', {
        description: 'A page ends after a mebibyte, too.',
        requestParams: { query: z.object(wholeListParameters) },
        responses: {
          200: json('A page, oldest first.', z.object({ webhooks: z.array(webhookSchema), ...pageMembers })),
        },
      }),
      post: operation('createWebhook', 'Send events to an address', {
        description: `${DELIVERY} The events are those that are stored from now on. A workspace can have ${config.WEBHOOKS_PER_WORKSPACE} webhooks.`,
        requestBody: body(newWebhookSchema),
        responses: { 201: json('The webhook, with its secret.', withSecretSchema) },
        codes: [...BODY_CODES, 'query_too_expensive'],
      }),
    },
    '/webhooks/{id}': {
      get: operation('getWebhook', 'A webhook', one({ responses: webhook })),
      patch: operation(
        'changeWebhook',
        'Change a webhook',
        one({ requestBody: body(webhookChangeSchema), responses: webhook }, [...BODY_CODES, 'query_too_expensive']),
      ),
      delete: operation(
        'deleteWebhook',
        'Delete a webhook',
        one({ responses: { 204: { description: 'It is deleted.' } } }),
      ),
    },
    '/webhooks/{id}/rotate': {
      post: operation(
        'rotateWebhook',
        'Change the secret',
        one({
          description: 'The secret before signs as well for 24 hours: each delivery has two signatures.',
          responses: { 200: json('The webhook, with its new secret.', withSecretSchema) },
        }),
      ),
    },
    '/webhooks/{id}/resume': {
      post: operation('resumeWebhook', 'Go on where it stopped', one({ responses: webhook })),
    },
    '/webhooks/{id}/test': {
      post: operation(
        'testWebhook',
        'Send a test',
        one({
          description:
            'Sends `{"type": "test", …}` once, and waits for the response. Two tests of a workspace may be under way at once.',
          responses: { 200: json('What came of it.', testSchema) },
        }),
      ),
    },
    '/webhooks/{id}/replay': {
      post: operation(
        'replayWebhook',
        'Send events again',
        one(
          {
            description:
              'Goes back to the first event that was received since a time, and sends everything after it again.',
            requestParams: { query: z.object({ from: replayParameters.from }) },
            responses: webhook,
          },
          ['query_too_expensive', 'position_lost'],
        ),
      ),
    },
    '/webhooks/{id}/deliveries': {
      get: operation(
        'listWebhookDeliveries',
        'The last attempts',
        one({
          responses: {
            200: json('The last 100 at most, newest first.', z.object({ deliveries: z.array(deliverySchema) })),
          },
        }),
      ),
    },
  };
}
