import { STATUS_CODES } from 'node:http';
import type { Logger } from '@sluice/shared/base/log';
import { allowOrigins } from '@sluice/shared/http/cors';
import { acceptJsonBodies } from '@sluice/shared/http/json-body';
import { MemoryBudget } from '@sluice/shared/http/memory-budget';
import { refuseOtherMethods } from '@sluice/shared/http/other-methods';
import { ownTls } from '@sluice/shared/http/own-tls';
import { registerDocument } from '@sluice/shared/http/reference';
import { createHttpServer } from '@sluice/shared/http/server';
import { parseExactJson } from '@sluice/shared/text/json';
import type { FastifyInstance } from 'fastify';
import type { Registry } from 'prom-client';
import type { TrenchConfig } from './config.ts';
import { registerGetEvents, registerPostEvents } from './events/events-route.ts';
import { holdRequests } from './http/held-requests.ts';
import { registerPostQueries } from './queries/post-queries.ts';
import { Service } from './upstream/service.ts';
import { registerWebhooks } from './webhooks/webhooks-route.ts';
import { registerWorkspaces } from './workspaces/workspaces-route.ts';

export interface TrenchDependencies {
  readonly logger: Logger;
  readonly registry: Registry;
  /** The wall clock, in milliseconds since 1970. */
  readonly now: () => number;
}

/** What Trench says at `/`. */
export const RUNNING = 'Trench server is running';

/** Builds the HTTP server with Trench's routes. Each calls ingest-api or query-api, and nothing is kept here. */
export function buildApp(config: TrenchConfig, { logger, registry, now }: TrenchDependencies): FastifyInstance {
  const limits = { timeoutMs: config.SERVICE_TIMEOUT_MS, bytesMax: config.RESPONSE_BYTES_MAX };
  const ingest = new Service({
    ...{ name: 'ingest-api', url: config.INGEST_URL, unavailable: 'event_log_unavailable' },
    ...limits,
  });
  const query = new Service({
    ...{ name: 'query-api', url: config.QUERY_URL, unavailable: 'store_unavailable' },
    ...limits,
  });
  const app = createHttpServer({
    ...{ logger, registry },
    readiness: async () => (await Promise.all([ingest.missing(), query.missing()])).flat(),
    bodyLimit: config.BODY_BYTES_MAX,
    allowedHosts: config.ALLOWED_HOSTS,
    problemMembers: ({ status }) => ({ statusCode: status, error: STATUS_CODES[status] ?? 'Error' }),
    tls: ownTls(config, logger),
  });
  // A DELETE has the type of JSON, too, where a client sets it always.
  acceptJsonBodies(app, parseExactJson);
  // A beacon is sent with credentials, and a browser asks first whether it may where the beacon is JSON. No cookie counts.
  allowOrigins(app, config.CORS_ORIGINS, { methods: ['GET', 'POST', 'PUT', 'DELETE'], credentials: true });
  app.get('/', async (_request, reply) => await reply.type('text/plain; charset=utf-8').send(RUNNING));
  app.register(async (routes) => {
    holdRequests(routes, new MemoryBudget(config.PENDING_BYTES_MAX), config.BODY_BYTES_MAX);
    registerPostEvents(routes, {
      ...{ ingest, now },
      propertiesMax: config.PROPERTIES_PER_SUBMISSION_MAX,
      eventBytesMax: config.EVENT_BYTES_MAX,
    });
    registerGetEvents(routes, query);
    registerPostQueries(routes, query);
    registerWebhooks(routes, query);
    registerWorkspaces(routes, { config, ingest, query, now });
  });
  registerDocument(app, async () => (await import('./openapi.ts')).trenchDocument(config));
  refuseOtherMethods(app);
  return app;
}
