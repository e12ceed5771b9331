import { Problem } from '@sluice/shared/http/problem';
import { untilDisconnected } from '@sluice/shared/http/response-end';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import type { Service, ServiceRequest } from '../upstream/service.ts';
import { queryBody, shownOf, storedWebhook, withTheirNames } from './webhook-body.ts';

/** The largest body, in bytes. */
export const WEBHOOK_BODY_BYTES_MAX = 16 * 1_024;

interface OfWebhook {
  Params: { uuid: string };
}

const listed = z.object({ webhooks: z.array(storedWebhook) });
const created = storedWebhook.extend({ secret: z.string() });

/** Registers `/webhooks`: those of query-api, which also delivers them. */
export function registerWebhooks(app: FastifyInstance, query: Service): void {
  const options = { bodyLimit: WEBHOOK_BODY_BYTES_MAX };

  async function ask(
    given: Pick<ServiceRequest, 'method' | 'body'> & { readonly uuid?: string },
    request: FastifyRequest,
    reply: FastifyReply,
  ): Promise<unknown> {
    const { method, body, uuid } = given;
    const path = uuid === undefined ? '/webhooks' : `/webhooks/${encodeURIComponent(uuid)}`;
    const common = { method, path, mayBeMissing: uuid !== undefined, of: request };
    try {
      return await untilDisconnected(reply, (signal) =>
        query.send({ ...common, ...(body !== undefined && { body }), signal }),
      );
    } catch (error) {
      throw error instanceof Problem ? withTheirNames(error) : error;
    }
  }

  app.get('/webhooks', async (request, reply) => {
    const { webhooks } = listed.parse(await ask({ method: 'GET' }, request, reply));
    return { results: webhooks.map(shownOf), limit: 0, offset: 0, total: webhooks.length };
  });
  app.post('/webhooks', options, async (request, reply) => {
    const body = JSON.stringify(queryBody(request.body));
    const { secret, ...webhook } = created.parse(await ask({ method: 'POST', body }, request, reply));
    return await reply.code(201).send({ ...shownOf(webhook), secret });
  });
  app.put<OfWebhook>('/webhooks/:uuid', options, async (request, reply) => {
    const body = JSON.stringify(queryBody(request.body));
    const { uuid } = request.params;
    return shownOf(storedWebhook.parse(await ask({ method: 'PATCH', body, uuid }, request, reply)));
  });
  app.delete<OfWebhook>('/webhooks/:uuid', options, async (request, reply) => {
    await ask({ method: 'DELETE', uuid: request.params.uuid }, request, reply);
    return await reply.code(200).send();
  });
}
