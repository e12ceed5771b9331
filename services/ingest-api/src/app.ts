import type { Logger } from '@sluice/shared/base/log';
import { allowOrigins } from '@sluice/shared/http/cors';
import { MemoryBudget } from '@sluice/shared/http/memory-budget';
import { refuseOtherMethods } from '@sluice/shared/http/other-methods';
import { ownTls } from '@sluice/shared/http/own-tls';
import { RateLimiter } from '@sluice/shared/http/rate-limiter';
import { registerReference } from '@sluice/shared/http/reference';
import { createHttpServer } from '@sluice/shared/http/server';
import type { KeyRing } from '@sluice/shared/keys/key-ring';
import { nobodyOf } from '@sluice/submissions/reading/nobody';
import { submissionSchemas } from '@sluice/submissions/reading/submission';
import { SubmissionReader } from '@sluice/submissions/reading/submission-reader';
import type { FastifyInstance } from 'fastify';
import type { Registry } from 'prom-client';
import { type IngestConfig, rowBytesMax } from './config.ts';
import { Admission, type ComparedClock } from './http/admission.ts';
import { BodyQueue } from './http/body-queue.ts';
import { registerBodyReader } from './http/body-reader.ts';
import type { RowPublisher } from './kafka/row-publisher.ts';
import type { IngestMetrics } from './metrics.ts';
import { registerSettings, registerSourceConfig } from './routes/client-settings.ts';
import { registerDeleteUser } from './routes/delete-user.ts';
import { registerIdentities } from './routes/identities.ts';
import { KnownLinks } from './routes/known-links.ts';
import { registerPostCalls } from './routes/post-calls.ts';
import { registerPostSubmissions } from './routes/post-submissions.ts';
import { registerClientSetup } from './routes/posthog/client-setup.ts';
import { registerPostEvents } from './routes/posthog/post-events.ts';
import type { VersionClock } from './routes/version-clock.ts';

export interface IngestDependencies {
  readonly keys: KeyRing;
  readonly publisher: RowPublisher;
  readonly clock: ComparedClock;
  readonly logger: Logger;
  readonly registry: Registry;
  readonly metrics: IngestMetrics;
  readonly versions: VersionClock;
  /** The wall clock, in milliseconds since 1970. */
  readonly now: () => number;
  readonly readiness: () => Promise<readonly string[]>;
  /** What an operator should change, though submissions are accepted. */
  readonly warnings: () => readonly string[];
}

/** Builds ingest-api's HTTP server: validates submissions, stamps them, and responds once Kafka has their rows. */
export function buildApp(config: IngestConfig, deps: IngestDependencies): FastifyInstance {
  const { publisher, logger, registry, metrics, versions, now, readiness, warnings } = deps;
  const limits = {
    eventsMax: config.EVENTS_PER_SUBMISSION_MAX,
    propertiesMax: config.PROPERTIES_PER_SUBMISSION_MAX,
    now,
  };
  const schemas = submissionSchemas(limits);
  const reader = new SubmissionReader({ ...limits, schemas, eventBytesMax: config.EVENT_BYTES_MAX });
  const partitionCount = config.KAFKA_PARTITIONS;

  const app = createHttpServer({
    ...{ logger, registry, readiness, warnings },
    bodyLimit: config.BODY_BYTES_MAX,
    trustedProxies: config.TRUSTED_PROXIES,
    allowedHosts: config.ALLOWED_HOSTS,
    tls: ownTls(config, logger),
  });
  registerBodyReader(app, config.BODY_BYTES_MAX);
  // A beacon is sent with credentials, and a browser asks first whether it may where the beacon is JSON. No cookie counts.
  allowOrigins(app, config.CORS_ORIGINS, { methods: ['GET', 'POST'], credentials: true });
  const admission = createAdmission(config, deps);
  admission.register(app);

  const bodies = new BodyQueue();
  const nobody = nobodyOf(config);
  const links = new KnownLinks({ nobody, now: () => performance.now(), metrics, logger });
  const common = { admission, bodies, publisher, versions, links, metrics, partitionCount };
  registerPostSubmissions(app, { ...common, reader });
  const callOptions = {
    ...common,
    bodyBytesMax: config.BODY_BYTES_MAX,
    callsMax: config.EVENTS_PER_SUBMISSION_MAX,
    callBytesMax: config.EVENT_BYTES_MAX,
    propertiesMax: config.PROPERTIES_PER_SUBMISSION_MAX,
    produceTimeoutMs: config.PRODUCE_TIMEOUT_MS,
    now,
  };
  registerPostCalls(app, callOptions);
  registerPostEvents(app, callOptions);
  const { ignoredRecordings, ignoredRequests } = metrics;
  registerClientSetup(app, { ...callOptions, ignoredRecordings, ignoredRequests });
  registerSourceConfig(app, admission);
  registerSettings(app, ignoredRequests);
  registerDeleteUser(app, { admission, publisher, versions, links, partitionCount });
  registerIdentities(app, { admission, publisher, versions, nobody, partitionCount });
  registerReference(app, async () => (await import('./openapi.ts')).ingestDocument(config, schemas));
  refuseOtherMethods(app);
  return app;
}

function createAdmission(config: IngestConfig, { keys, clock, registry, metrics }: IngestDependencies): Admission {
  const memory = new MemoryBudget(config.PENDING_BYTES_MAX);
  metrics.memoryBudget.set(config.PENDING_BYTES_MAX);
  metrics.reservedMemory.sampleFrom(() => memory.reservedBytes);
  const limiter = new RateLimiter({ perSecondDefault: config.RATE_LIMIT_DEFAULT, registry });
  return new Admission({
    keys,
    clock,
    limiter,
    memory,
    bodyBytesMax: config.BODY_BYTES_MAX,
    rowBytesMax: rowBytesMax(config),
  });
}
