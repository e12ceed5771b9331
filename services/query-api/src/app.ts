import type { Logger } from '@sluice/shared/base/log';
import type { ClickHouseClient } from '@sluice/shared/clickhouse/client';
import { isShared } from '@sluice/shared/config';
import { allowOrigins } from '@sluice/shared/http/cors';
import { acceptJsonBodies } from '@sluice/shared/http/json-body';
import { MemoryBudget } from '@sluice/shared/http/memory-budget';
import { refuseOtherMethods } from '@sluice/shared/http/other-methods';
import { ownTls } from '@sluice/shared/http/own-tls';
import type { QueryParameters } from '@sluice/shared/http/query-string';
import { RateLimiter } from '@sluice/shared/http/rate-limiter';
import { registerReference } from '@sluice/shared/http/reference';
import { createHttpServer } from '@sluice/shared/http/server';
import type { KeyRing } from '@sluice/shared/keys/key-ring';
import { parseJson } from '@sluice/shared/text/json';
import type { FastifyInstance } from 'fastify';
import type { Registry } from 'prom-client';
import { AlertMetrics, numberSources, registerAlerts, registerDigests } from './alerts/alerts.ts';
import type { QueryConfig } from './config.ts';
import {
  allowsWorkspace,
  compressResponses,
  describedRoutes,
  type Gate,
  RequestMemory,
  readerOf,
} from './http/http.ts';
import {
  Levelling,
  type Place,
  PropertyReads,
  registerAudits,
  registerConsole,
  registerDeadLetters,
  registerExample,
  registerFastProperties,
  registerIdentitySettings,
  registerKeys,
  registerNames,
  registerPipeline,
  registerSegments,
  registerViews,
  segmentsAreOff,
  Views,
} from './manage/manage.ts';
import { declareMemoryMetrics, QueryMetrics, StreamMetrics } from './metrics.ts';
import {
  type KnownSegments,
  namesSegments,
  registerDeleteUser,
  registerEntities,
  registerEvents,
  registerIdentities,
} from './records/records.ts';
import { registerReports } from './reports/reports.ts';
import { registerSql, SqlRunner } from './sql/sql.ts';
import { openStores, QueryRunner, RequestSlots, RequestStore, type Source, type StreamStores } from './store/store.ts';
import { registerStream, StreamHubs } from './stream/stream.ts';
import { AllowedAddresses, registerWebhooks, WebhookMetrics, Webhooks } from './webhooks/webhooks.ts';

export interface QueryDependencies {
  readonly source: Source;
  /** Stores the state of webhooks, and what the console keeps. Default: both are off. */
  readonly webhooks?: ClickHouseClient | undefined;
  /** The name of the replica that this client reaches. Default: ClickHouse does not replicate the tables. */
  readonly webhooksReplica?: string | undefined;
  /** Connects to another server with the same account. Default: there is none that has to have what is declared. */
  readonly connectWebhooks?: ((place: Place) => ClickHouseClient) | undefined;
  readonly keys: KeyRing;
  readonly logger: Logger;
  readonly registry: Registry;
  /** Returns what is missing, besides servers of the source. */
  readonly readiness: () => Promise<readonly string[]>;
}

declare module 'fastify' {
  interface FastifyRequest {
    /** The hash of the key of the request; empty if it has none. */
    keyHash: string;
    /** The one workspace that the request may read. */
    workspace: string;
    /** What all queries of the request read. */
    store: RequestStore;
  }
}

/** What pages of other origins may send. They send a key in a header, so no cookies are involved. */
const CORS = { methods: ['GET'], allowedHeaders: ['authorization', 'x-request-id', 'last-event-id'] };

/** Where nothing can be stored there are no segments. */
const SEGMENTS_OFF: KnownSegments = {
  inQuery: async (_, query) => (namesSegments(query) ? segmentsAreOff() : query),
};

/** Builds query-api's HTTP server. Each request reads the events, users and organizations of one workspace. */
export function buildApp(config: QueryConfig, deps: QueryDependencies): FastifyInstance {
  const { source, keys, logger, registry } = deps;
  const open = openStores(source, {
    ...{ config, registry, logger },
    queryRunner: { all: (query) => queryRunner.all(query) },
  });
  const readiness = async () => [...(await deps.readiness()), ...(await open.missing())];
  const app = createHttpServer({
    ...{ logger, registry, readiness },
    allowedHosts: config.ALLOWED_HOSTS,
    tls: ownTls(config, logger),
  });
  const limiter = new RateLimiter({ perSecondDefault: config.RATE_LIMIT_DEFAULT, registry });
  const metrics = new QueryMetrics(registry);
  const { levelling, propertyReads } = ofSettings(deps, open);
  const queryRunner = new QueryRunner(open.stores, config, metrics, logger, propertyReads?.note);
  const slots = new RequestSlots(config, metrics);
  const reads = { config, queryRunner };
  const sqlRunner = new SqlRunner({ config, queryRunner, metrics });
  const { stores } = open;
  const streams = new StreamHubs({ ...reads, stores, readiness, metrics: new StreamMetrics(registry), logger });
  const budget = createMemoryBudget(config, registry);
  const views = deps.webhooks && new Views(deps.webhooks);
  const segments: KnownSegments = views?.segments ?? SEGMENTS_OFF;
  const sources = { open: streams.open.bind(streams), inQuery: segments.inQuery };
  const delivering = { ...reads, streams: sources, memory: budget, stores, logger };
  const [ofWebhooks, ofAlerts] = [new WebhookMetrics(registry), new AlertMetrics(registry)];
  const webhooks =
    deps.webhooks && views && !isShared(config)
      ? new Webhooks({
          ...{ ...delivering, client: deps.webhooks, replica: deps.webhooksReplica, metrics: ofWebhooks },
          numberSources: (find) => numberSources({ ...delivering, views, metrics: ofAlerts, find }),
        })
      : undefined;
  const anonymousWorkspace = config.QUERY_ANONYMOUS_WORKSPACE;
  const gate = { keys, limiter, linkKeys: views?.linkKeys, anonymousWorkspace };
  runWith(app, { open, webhooks, levelling, propertyReads, queryRunner, slots, streams });
  allowOrigins(app, config.CORS_ORIGINS, CORS);
  compressResponses(app);
  const described = describedRoutes(app);
  app.register(async (routes) => {
    admitReaders(routes, gate, new RequestMemory(budget, config), stores);
    slots.register(routes);
    // Rooms with bodies replace it by their own.
    acceptJsonBodies(routes, parseJson);
    replaceSegments(routes, segments);
    const addresses = new AllowedAddresses(config.WEBHOOK_ALLOW_NETWORKS);
    const managed = { ...reads, webhooks, streams: sources, stores, addresses, segments };
    // The OpenAPI document has this order.
    const rooms: readonly ((room: FastifyInstance) => void)[] = [
      (room) => registerEvents(room, reads),
      (room) => registerStream(room, streams, (request) => allowsWorkspace(request, keys, anonymousWorkspace)),
      (room) => registerReports(room, reads),
      (room) => registerSql(room, sqlRunner),
      (room) => registerWebhooks(room, managed),
      (room) => registerAlerts(room, managed, views),
      (room) => registerDigests(room, managed, views),
      (room) => registerViews(room, { ...reads, keys, sqlRunner }, views),
      (room) => registerSegments(room, reads, views?.segments),
      (room) => registerNames(room, reads, views?.namings),
      (room) => registerFastProperties(room, reads, views?.fastProperties, propertyReads),
      (room) => registerPipeline(room, reads, registry),
      (room) => registerAudits(room, reads),
      (room) => registerKeys(room, config),
      (room) => registerDeadLetters(room, reads, keys),
      (room) => registerExample(room, reads, keys),
      (room) => registerEntities(room, reads),
      (room) => registerDeleteUser(room, config.INGEST_URLS),
      (room) => registerIdentities(room, reads),
      (room) => registerIdentitySettings(room, reads, views?.identitySettings),
    ];
    for (const register of rooms) routes.register(async (room) => register(room));
  });
  // In a room of its own, since compression is for the routes of rooms.
  app.register(async (room) => registerConsole(room, { ingestUrls: config.INGEST_URLS }));
  registerReference(app, async () => (await import('./openapi.ts')).queryDocument(config, described), 'console/');
  refuseOtherMethods(app);
  return app;
}

interface Running {
  readonly open: OpenStores;
  readonly webhooks: Webhooks | undefined;
  readonly levelling: Levelling | undefined;
  readonly propertyReads: PropertyReads | undefined;
  readonly queryRunner: QueryRunner;
  readonly slots: RequestSlots;
  readonly streams: StreamHubs;
}

/** Returns what runs beside requests for what workspaces set: nothing where that cannot be stored, or is where all events are. */
function ofSettings({ webhooks: own, connectWebhooks: connect, logger }: QueryDependencies, open: OpenStores) {
  return {
    levelling: own && connect ? new Levelling({ own, places: open.servers, connect, logger }) : undefined,
    propertyReads: own && new PropertyReads(own, logger),
  };
}

type OpenStores = ReturnType<typeof openStores>;

/** Starts what runs beside requests with the server, and stops it before. */
function runWith(app: FastifyInstance, running: Running): void {
  const { open, webhooks, levelling, propertyReads, queryRunner, slots, streams } = running;
  app.addHook('onReady', async () => {
    await open.start();
    await webhooks?.start();
    await levelling?.start();
    await propertyReads?.start();
  });
  app.addHook('onClose', () => open.stop());
  // Before the server waits for its requests to end.
  app.addHook('preClose', async () => {
    await webhooks?.stop();
    await levelling?.stop();
    await propertyReads?.stop();
    queryRunner.close();
    slots.close();
    await streams.stop();
  });
}

/** Lets those alone read who may, each its own workspace, and holds their responses in memory. */
function admitReaders(routes: FastifyInstance, gate: Gate, memory: RequestMemory, stores: StreamStores): void {
  routes.decorateRequest('workspace', '');
  routes.decorateRequest('keyHash', '');
  // The hook below opens one for each request.
  routes.decorateRequest('store');
  memory.register(routes);
  routes.addHook('onRequest', async (request, reply) => {
    // What a workspace has is for whoever holds its key, and may be deleted.
    reply.header('cache-control', 'no-store');
    const reader = await readerOf(request, gate);
    request.workspace = reader.workspace;
    request.keyHash = reader.hash;
    request.store = new RequestStore(stores);
    memory.open(request, reply, reader);
  });
}

/** Puts what segments are in place of their names, in the query of each read. */
function replaceSegments(routes: FastifyInstance, segments: KnownSegments): void {
  routes.addHook('preHandler', async (request) => {
    const isRead = request.routeOptions.config.admission === 'queries';
    if (isRead) request.query = await segments.inQuery(request.workspace, request.query as QueryParameters);
  });
}

function createMemoryBudget(config: QueryConfig, registry: Registry): MemoryBudget {
  const budget = new MemoryBudget(config.QUERY_PENDING_BYTES_MAX);
  declareMemoryMetrics(registry, config.QUERY_PENDING_BYTES_MAX, () => budget.reservedBytes);
  return budget;
}
