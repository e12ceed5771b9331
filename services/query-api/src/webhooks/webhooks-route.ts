import type { QueryParameters } from '@sluice/shared/http/query-string';
import type { FastifyInstance } from 'fastify';
import { z } from 'zod';
import type { QueryConfig } from '../config.ts';
import { described, once } from '../http/http.ts';
import { parseParameters, refuseErrors, timestampParameter } from '../records/records.ts';
import { eventWebhooks } from './event-webhooks.ts';
import { describeManaged, type ManagedParts, managedSchema, registerManaged } from './managed-routes.ts';
import { positionSince, type ReplayOptions } from './webhook-replay.ts';
import { newWebhookSchema, parseWebhook, type WebhookRules, webhookChangeSchema } from './webhook-request.ts';
import type { Webhooks } from './webhooks-component.ts';

/** The largest body, in bytes. */
export const WEBHOOK_BODY_BYTES_MAX = 128 * 1_024;

/** The parameters of `POST /webhooks/ID/replay`. */
export const replayParameters = {
  from: timestampParameter(
    (dayMs) => dayMs,
    'Events that were received since this time are sent again. ISO 8601, in UTC without a zone.',
  ),
} as const;

/** What the routes of webhooks need. */
export interface WebhooksRoom extends WebhookRules, ReplayOptions {
  readonly config: Pick<QueryConfig, 'WEBHOOKS_PER_WORKSPACE'>;
  /** Undefined where they are off. */
  readonly webhooks: Webhooks | undefined;
}

/** Registers the routes of webhooks. */
export function registerWebhooks(app: FastifyInstance, room: WebhooksRoom): void {
  const { webhooks, streams, config } = room;
  const { on, waiting } = registerManaged(app, {
    ...{ path: '/webhooks', bodyBytesMax: WEBHOOK_BODY_BYTES_MAX, webhooks, describe: DESCRIBE },
    kind: eventWebhooks(streams, config.WEBHOOKS_PER_WORKSPACE),
    parseNew: (body, workspace) => parseWebhook(newWebhookSchema, body, workspace, room),
    parseChange: (body, workspace) => parseWebhook(webhookChangeSchema, body, workspace, room),
  });
  app.post<ManagedParts>('/webhooks/:id/replay', described(waiting, describeReplay), async (request) => {
    const fromMs = parseReplay(request);
    const { workspace, params } = request;
    const { webhook } = await on().require(workspace, params.id);
    await on().begin(webhook, { position: await positionSince(room, webhook, fromMs) });
    return await on().find(workspace, params.id);
  });
}

/** @throws {Problem} `invalid_request` */
function parseReplay({ query }: { readonly query: QueryParameters }): number {
  const { values, errors } = parseParameters(replayParameters, { fields: {}, documents: [] }, query);
  const isMissing = values.from === undefined && errors.length === 0;
  refuseErrors(isMissing ? [{ path: 'from', code: 'missing', message: 'is required' }] : errors);
  return values.from as number;
}

const schema = once(() =>
  z
    .object({
      ...managedSchema.head,
      filter: z.record(z.string(), z.string()),
      batched: z.boolean(),
      ...managedSchema.rest,
    })
    .meta({ id: 'Webhook' }),
);

const DELIVERY = `A delivery is a \`POST\` of \`{"type": "event", "timestamp": …, "data": EVENT}\`, or of \`"events"\` with an array of events, signed as
Standard Webhooks says. Events come at least once, in the order of storage. Any 2xx within the time limit is a delivery;
otherwise it is sent again, later and later, and no later event is sent before.`;

const { describe: DESCRIBE, describingOne } = describeManaged({
  ...{
    name: 'webhook',
    title: 'Webhook',
    tag: 'webhooks',
    schema,
    created: newWebhookSchema,
    change: webhookChangeSchema,
  },
  summary: 'Send events to an address',
  description: (config) =>
    `${DELIVERY} The events are those that are stored from now on. A workspace can have ${config.WEBHOOKS_PER_WORKSPACE} webhooks.`,
  codes: ['query_too_expensive'],
});

const describeReplay = describingOne('replayWebhook', 'Send events again', () => ({
  description: 'Goes back to the first event that was received since a time, and sends everything after it again.',
  requestParams: { query: z.object({ from: replayParameters.from }) },
  codes: ['query_too_expensive', 'position_lost'],
}));
