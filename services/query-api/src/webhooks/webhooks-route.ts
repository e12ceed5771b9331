import { Problem } from '@sluice/shared/http/problem';
import type { QueryParameters } from '@sluice/shared/http/query-string';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { acceptJson } from '../http/request-memory.ts';
import { timestampParameter } from '../records/filters/parameter-schemas.ts';
import { parseParameters, refuseErrors, refuseParameters } from '../records/filters/parameters.ts';
import { PAGE_BYTES, parseWholeList } from '../records/filters/whole-lists.ts';
import { whileConnected } from '../store/read-route.ts';
import type { AllowedAddresses } from './allowed-addresses.ts';
import type { WebhookOperations } from './webhook-operations.ts';
import { newWebhookSchema, parseWebhook, webhookChangeSchema } from './webhook-request.ts';

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
  addresses: AllowedAddresses,
  operations: WebhookOperations | undefined,
): void {
  app.register(async (routes) => {
    acceptJson(routes, WEBHOOK_BODY_BYTES_MAX);
    const optionsOf = (pool: 'documents' | 'webhooks', bytes = WEBHOOK_BYTES) =>
      ({ config: { scope: 'webhooks', admission: { pool, bytes } }, bodyLimit: WEBHOOK_BODY_BYTES_MAX }) as const;
    const options = optionsOf('documents');
    const waiting = optionsOf('webhooks');
    const list = optionsOf('documents', MEMORY_PER_BYTE * (PAGE_BYTES + WEBHOOK_BODY_BYTES_MAX));
    const on = () => {
      if (operations) return operations;
      throw new Problem('webhooks_not_available', 'Webhooks are off; the operator can turn them on.');
    };
    routes.get<Parts>('/webhooks', list, async (request) => {
      const page = parseWholeList(request.query, ['webhooks', request.workspace]);
      return await on().list(request.workspace, page);
    });
    routes.post<Parts>('/webhooks', waiting, async (request, reply) => {
      refuseParameters(request.query);
      const given = parseWebhook(newWebhookSchema, request.body, request.workspace, addresses);
      return await reply.status(201).send(await on().create(request.workspace, given));
    });
    routes.get<Parts>('/webhooks/:id', options, async (request) => {
      refuseParameters(request.query);
      return await on().find(request.workspace, request.params.id);
    });
    routes.patch<Parts>('/webhooks/:id', options, async (request) => {
      refuseParameters(request.query);
      const change = parseWebhook(webhookChangeSchema, request.body, request.workspace, addresses);
      return await on().change(request.workspace, request.params.id, change);
    });
    routes.delete<Parts>('/webhooks/:id', options, async (request, reply) => {
      refuseParameters(request.query);
      await on().delete(request.workspace, request.params.id);
      return await reply.status(204).send();
    });
    const act = (name: 'rotate' | 'resume') =>
      routes.post<Parts>(`/webhooks/:id/${name}`, options, async (request) => {
        refuseParameters(request.query);
        return await on()[name](request.workspace, request.params.id);
      });
    for (const name of ['rotate', 'resume'] as const) act(name);
    routes.post<Parts>('/webhooks/:id/test', options, async (request, reply) => {
      refuseParameters(request.query);
      return await whileConnected(reply, async (signal) => {
        const { workspace, params, releaseSlot } = request;
        return reply.send(await on().test(workspace, params.id, signal, releaseSlot));
      });
    });
    routes.post<Parts>('/webhooks/:id/replay', waiting, async (request) => {
      const fromMs = parseReplay(request);
      return await on().replay(request.workspace, request.params.id, fromMs);
    });
    routes.get<Parts>('/webhooks/:id/deliveries', options, async (request) => {
      refuseParameters(request.query);
      return { deliveries: await on().deliveries(request.workspace, request.params.id) };
    });
  });
}

/** @throws {Problem} `invalid_request` */
function parseReplay({ query }: WebhookRequest): number {
  const { values, errors } = parseParameters(replayParameters, { fields: {}, documents: [] }, query);
  const isMissing = values.from === undefined && errors.length === 0;
  refuseErrors(isMissing ? [{ path: 'from', code: 'missing', message: 'is required' }] : errors);
  return values.from as number;
}
