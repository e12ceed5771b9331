import { Problem } from '@sluice/shared/http/problem';
import type { QueryParameters } from '@sluice/shared/http/query-string';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { z } from 'zod';
import {
  acceptJson,
  BODY_CODES,
  type Describe,
  described,
  describer,
  jsonBody,
  jsonResponse,
  type OwnDescription,
  once,
} from '../http/http.ts';
import {
  PAGE_BYTES,
  pageMembers,
  parseParameters,
  parseWholeList,
  refuseErrors,
  refuseParameters,
  timestampParameter,
  wholeListParameters,
} from '../records/records.ts';
import { whileConnected } from '../store/store.ts';
import { PAUSE_REASONS } from './webhook.ts';
import type { WebhookOperations } from './webhook-operations.ts';
import { newWebhookSchema, parseWebhook, type WebhookRules, webhookChangeSchema } from './webhook-request.ts';

/** The largest body, in bytes. */
export const WEBHOOK_BODY_BYTES_MAX = 128 * 1_024;

/** The memory of a webhook as a multiple of its bytes: as for documents. */
const MEMORY_PER_BYTE = 6;

/** The most that a webhook takes when it is read and sent, or the log of one. Most of it is its filter. */
const WEBHOOK_BYTES = MEMORY_PER_BYTE * WEBHOOK_BODY_BYTES_MAX;

/** The parameters of `POST /webhooks/ID/replay`. */
export const replayParameters = {
  from: timestampParameter(
    (dayMs) => dayMs,
    'Events that were received since this time are sent again. ISO 8601, in UTC without a zone.',
  ),
} as const;

interface Parts {
  Querystring: QueryParameters;
  Params: { readonly id: string };
}

type WebhookRequest = FastifyRequest<Parts>;

/**
 * Registers the routes of webhooks.
 *
 * @param operations default: webhooks are off, and each route says so
 */
export function registerWebhooks(
  app: FastifyInstance,
  rules: WebhookRules,
  operations: WebhookOperations | undefined,
): void {
  acceptJson(app, WEBHOOK_BODY_BYTES_MAX);
  const optionsOf = (pool: 'documents' | 'webhooks', bytes = WEBHOOK_BYTES) =>
    ({ config: { scope: 'webhooks', admission: { pool, bytes } }, bodyLimit: WEBHOOK_BODY_BYTES_MAX }) as const;
  const options = optionsOf('documents');
  const waiting = optionsOf('webhooks');
  const list = optionsOf('documents', MEMORY_PER_BYTE * (PAGE_BYTES + WEBHOOK_BODY_BYTES_MAX));
  const on = () => {
    if (operations) return operations;
    throw new Problem('webhooks_not_available', 'Webhooks are off; the operator can turn them on.');
  };
  app.get<Parts>('/webhooks', described(list, DESCRIBE.list), async (request) => {
    const page = parseWholeList(request.query, ['webhooks', request.workspace]);
    return await on().list(request.workspace, page);
  });
  app.post<Parts>('/webhooks', described(waiting, DESCRIBE.create), async (request, reply) => {
    refuseParameters(request.query);
    const given = await parseWebhook(newWebhookSchema, request.body, request.workspace, rules);
    return await reply.status(201).send(await on().create(request.workspace, given));
  });
  app.get<Parts>('/webhooks/:id', described(options, DESCRIBE.get), async (request) => {
    refuseParameters(request.query);
    return await on().find(request.workspace, request.params.id);
  });
  app.patch<Parts>('/webhooks/:id', described(options, DESCRIBE.change), async (request) => {
    refuseParameters(request.query);
    const change = await parseWebhook(webhookChangeSchema, request.body, request.workspace, rules);
    return await on().change(request.workspace, request.params.id, change);
  });
  app.delete<Parts>('/webhooks/:id', described(options, DESCRIBE.remove), async (request, reply) => {
    refuseParameters(request.query);
    await on().delete(request.workspace, request.params.id);
    return await reply.status(204).send();
  });
  const act = (name: 'rotate' | 'resume') =>
    app.post<Parts>(`/webhooks/:id/${name}`, described(options, DESCRIBE[name]), async (request) => {
      refuseParameters(request.query);
      return await on()[name](request.workspace, request.params.id);
    });
  for (const name of ['rotate', 'resume'] as const) act(name);
  app.post<Parts>('/webhooks/:id/test', described(options, DESCRIBE.test), async (request, reply) => {
    refuseParameters(request.query);
    return await whileConnected(reply, async (signal) => {
      const { workspace, params, releaseSlot } = request;
      return reply.send(await on().test(workspace, params.id, signal, releaseSlot));
    });
  });
  app.post<Parts>('/webhooks/:id/replay', described(waiting, DESCRIBE.replay), async (request) => {
    const fromMs = parseReplay(request);
    return await on().replay(request.workspace, request.params.id, fromMs);
  });
  app.get<Parts>('/webhooks/:id/deliveries', described(options, DESCRIBE.deliveries), async (request) => {
    refuseParameters(request.query);
    return { deliveries: await on().deliveries(request.workspace, request.params.id) };
  });
}

/** @throws {Problem} `invalid_request` */
function parseReplay({ query }: WebhookRequest): number {
  const { values, errors } = parseParameters(replayParameters, { fields: {}, documents: [] }, query);
  const isMissing = values.from === undefined && errors.length === 0;
  refuseErrors(isMissing ? [{ path: 'from', code: 'missing', message: 'is required' }] : errors);
  return values.from as number;
}

const schemas = once(() => {
  const time = z.iso.datetime();

  const webhook = z
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
  const withSecret = webhook.extend({ secret }).meta({ id: 'WebhookWithSecret' });

  const outcome = {
    id: z.string().meta({ description: 'The header `webhook-id`: the same in all attempts of a delivery.' }),
    status: z.int().nullable().meta({ description: 'The status of the response, if there was one.' }),
    durationMs: z.int().min(0),
    error: z.string().nullable(),
  };

  const test = z.object({ ...outcome, delivered: z.boolean() }).meta({ id: 'WebhookTest' });

  const delivery = z
    .object({
      ...outcome,
      at: time,
      type: z.enum(['event', 'events', 'test']),
      events: z.int().min(0),
      attempt: z.int().min(1),
    })
    .meta({ id: 'WebhookDelivery' });
  return { webhook, withSecret, test, delivery };
});

const DELIVERY = `A delivery is a \`POST\` of \`{"type": "event", "timestamp": …, "data": EVENT}\`, or of \`"events"\` with an array of events, signed as
Standard Webhooks says. Events come at least once, in the order of storage. Any 2xx within the time limit is a delivery;
otherwise it is sent again, later and later, and no later event is sent before.`;

const describing = describer({
  ...{ tag: 'webhooks', scope: 'webhooks', keyOptional: false },
  codes: ['webhooks_not_available', 'store_unavailable', 'overloaded'],
});

/** Describes an operation of one webhook; by itself it responds with the webhook. */
function describingOne(
  operationId: string,
  summary: string,
  own: () => Partial<OwnDescription> = () => ({}),
): Describe {
  return describing(operationId, summary, () => {
    const { requestParams, codes = [], ...rest } = own();
    return {
      responses: { 200: jsonResponse('The webhook.', schemas().webhook) },
      ...rest,
      requestParams: {
        path: z.object({ id: z.string().meta({ description: 'The id of the webhook.' }) }),
        ...requestParams,
      },
      codes: ['not_found', ...codes],
    };
  });
}

/** What describes each route. */
const DESCRIBE = {
  list: describing('listWebhooks', 'Webhooks of the workspace', () => ({
    description: 'A page ends after a mebibyte, too.',
    requestParams: { query: z.object(wholeListParameters) },
    responses: {
      200: jsonResponse('A page, oldest first.', z.object({ webhooks: z.array(schemas().webhook), ...pageMembers })),
    },
  })),
  create: describing('createWebhook', 'Send events to an address', (config) => ({
    description: `${DELIVERY} The events are those that are stored from now on. A workspace can have ${config.WEBHOOKS_PER_WORKSPACE} webhooks.`,
    requestBody: jsonBody(newWebhookSchema),
    responses: { 201: jsonResponse('The webhook, with its secret.', schemas().withSecret) },
    codes: [...BODY_CODES, 'query_too_expensive'],
  })),
  get: describingOne('getWebhook', 'A webhook'),
  change: describingOne('changeWebhook', 'Change a webhook', () => ({
    requestBody: jsonBody(webhookChangeSchema),
    codes: [...BODY_CODES, 'query_too_expensive'],
  })),
  remove: describingOne('deleteWebhook', 'Delete a webhook', () => ({
    responses: { 204: { description: 'It is deleted.' } },
  })),
  rotate: describingOne('rotateWebhook', 'Change the secret', () => ({
    description: 'The secret before signs as well for 24 hours: each delivery has two signatures.',
    responses: { 200: jsonResponse('The webhook, with its new secret.', schemas().withSecret) },
  })),
  resume: describingOne('resumeWebhook', 'Go on where it stopped'),
  test: describingOne('testWebhook', 'Send a test', () => ({
    description:
      'Sends `{"type": "test", …}` once, and waits for the response. Two tests of a workspace may be under way at once.',
    responses: { 200: jsonResponse('What came of it.', schemas().test) },
  })),
  replay: describingOne('replayWebhook', 'Send events again', () => ({
    description: 'Goes back to the first event that was received since a time, and sends everything after it again.',
    requestParams: { query: z.object({ from: replayParameters.from }) },
    codes: ['query_too_expensive', 'position_lost'],
  })),
  deliveries: describingOne('listWebhookDeliveries', 'The last attempts', () => ({
    responses: {
      200: jsonResponse(
        'The last 100 attempts at most, and the last 100 tests, newest first.',
        z.object({ deliveries: z.array(schemas().delivery) }),
      ),
    },
  })),
};
