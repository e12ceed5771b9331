import type { PathDescriptions } from '@sluice/shared/http/openapi';
import { z } from 'zod';
import { BODY_CODES, json, WITH_KEY } from '../http/openapi-parts.ts';
import { createdWebhook, shownWebhook, shownWebhooks, webhookBody } from './webhook-body.ts';

const WEBHOOK_EXAMPLE = {
  uuid: '4b3c7a52-6f0e-4f43-9b8a-0d6a6a0c3f11',
  url: 'https://example.com/events',
  enableBatching: true,
  eventTypes: ['*'],
  eventNames: ['ConnectedAccount'],
  flatten: false as const,
  createdAt: '2026-03-01T12:00:00.000Z',
};

const WITH_PRIVATE_KEY = { ...WITH_KEY, tag: 'webhooks', scope: 'webhooks' } as const;

const OF_WEBHOOK = { ...WITH_PRIVATE_KEY, requestParams: { path: z.object({ uuid: z.string() }) } };

const WEBHOOK_BODY = {
  required: true,
  content: json(webhookBody, { url: WEBHOOK_EXAMPLE.url, eventNames: WEBHOOK_EXAMPLE.eventNames }),
} as const;

const WEBHOOK_CODES = ['store_unavailable', 'webhooks_not_available'] as const;

/** The descriptions of the routes of webhooks. */
export const WEBHOOKS: PathDescriptions = {
  '/webhooks': {
    post: {
      ...WITH_PRIVATE_KEY,
      operationId: 'createWebhook',
      summary: 'Create a webhook',
      description:
        'Its deliveries are those of query-api: signed, at least once, each a `POST` of `{"type": "events", "timestamp": …, "data": […]}`. The key is a private one.',
      requestBody: WEBHOOK_BODY,
      responses: {
        201: {
          description: 'The webhook, and its secret this only time.',
          content: json(createdWebhook, {
            ...WEBHOOK_EXAMPLE,
            secret: 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYo=',
          }),
        },
      },
      codes: [...BODY_CODES, ...WEBHOOK_CODES],
    },
    get: {
      ...WITH_PRIVATE_KEY,
      operationId: 'getWebhooks',
      summary: 'Read all webhooks',
      responses: {
        200: {
          description: 'The webhooks of the workspace.',
          content: json(shownWebhooks, { results: [WEBHOOK_EXAMPLE], limit: 0, offset: 0, total: 1 }),
        },
      },
      codes: WEBHOOK_CODES,
    },
  },
  '/webhooks/{uuid}': {
    put: {
      ...OF_WEBHOOK,
      operationId: 'updateWebhook',
      summary: 'Change a webhook',
      requestBody: WEBHOOK_BODY,
      responses: { 200: { description: 'The webhook.', content: json(shownWebhook, WEBHOOK_EXAMPLE) } },
      codes: ['not_found', ...BODY_CODES, ...WEBHOOK_CODES],
    },
    delete: {
      ...OF_WEBHOOK,
      operationId: 'deleteWebhook',
      summary: 'Delete a webhook',
      responses: { 200: { description: 'It is deleted.' } },
      codes: ['not_found', ...WEBHOOK_CODES],
    },
  },
};
