import cors from '@fastify/cors';
import { authenticate } from '@sluice/shared/http/authentication';
import { invalidRequest, Problem } from '@sluice/shared/http/problem';
import { createRateLimiter } from '@sluice/shared/http/rate-limiter';
import { REFERENCE_PATHS, registerReference } from '@sluice/shared/http/reference';
import { createHttpServer, refuseOtherMethods } from '@sluice/shared/http/server';
import { parseJson } from '@sluice/shared/json';
import type { ApiKey, KeyRing } from '@sluice/shared/keys/key-ring';
import type { Scope } from '@sluice/shared/keys/keys-file';
import type { Logger } from '@sluice/shared/log';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { Counter, Gauge, type Registry } from 'prom-client';
import { z } from 'zod';
import { registerBodyParser } from './body-parser.ts';
import type { IngestConfig } from './config.ts';
import { createMemoryBudget } from './memory-budget.ts';
import { ingestDocument } from './openapi.ts';
import { PublishTimeout, type RowPublisher } from './row-publisher.ts';
import {
  deletionParameters,
  idempotencyKey,
  type Submission,
  type SubmittedEvent,
  submissionSchemas,
} from './submission.ts';
import { deletionRow, type OutgoingRow, submissionRows } from './submission-rows.ts';
import type { VersionClock } from './version-clock.ts';

const USER_GROUPS = '/v1/public/userGroups';
const PUBLIC_USERS = '/v1/public/users';
const USERS = '/v1/users';

/** Seconds after which a client is asked to try again when Kafka does not answer or memory is full. */
const RETRY_AFTER_SECONDS = 2;

const deletionQuery = z.strictObject({
  foreignId: z
    .array(z.string(), { error: 'is required' })
    .length(1, 'must be given once')
    .transform(([id]) => id)
    .pipe(deletionParameters.foreignId),
});

export interface IngestDependencies {
  readonly keys: KeyRing;
  readonly publisher: RowPublisher;
  readonly logger: Logger;
  readonly registry: Registry;
  readonly versions: VersionClock;
  readonly now: () => number;
  readonly readiness: () => Promise<readonly string[]>;
}

declare module 'fastify' {
  interface FastifyRequest {
    apiKey: ApiKey;
    reservedBytes: number;
  }
}

/** Builds ingest-api's HTTP server: validates submissions, stamps them, and answers once Kafka has their rows. */
export function buildApp(config: IngestConfig, deps: IngestDependencies): FastifyInstance {
  const { keys, publisher, logger, registry, versions, now, readiness } = deps;
  const app = createHttpServer({ logger, registry, readiness, bodyLimit: config.BODY_BYTES_MAX });
  const schemas = submissionSchemas({ eventsMax: config.EVENTS_PER_SUBMISSION_MAX, now });
  const limiter = createRateLimiter({ perSecondDefault: config.RATE_LIMIT_DEFAULT, registry });
  const memory = createMemoryBudget(config.PENDING_BYTES_MAX);
  const acceptedEvents = new Counter({
    name: 'sluice_ingest_events_accepted_total',
    help: 'Events acknowledged by Kafka.',
    registers: [registry],
  });
  new Gauge({
    name: 'sluice_ingest_reserved_bytes',
    help: 'Memory reserved by requests that are under way.',
    registers: [registry],
    collect() {
      this.set(memory.reservedBytes);
    },
  });

  registerBodyParser(app, config.BODY_BYTES_MAX);
  if (config.CORS_ORIGINS.length > 0) {
    app.register(cors, {
      origin: [...config.CORS_ORIGINS],
      methods: ['POST'],
      allowedHeaders: ['authorization', 'content-type', 'content-encoding', 'idempotency-key', 'x-request-id'],
      exposedHeaders: ['x-request-id', 'retry-after'],
      maxAge: 86_400,
    });
  }
  app.decorateRequest('apiKey');
  app.decorateRequest('reservedBytes', 0);
  app.addHook('onSend', (request, _reply, _payload, done) => {
    release(request);
    done();
  });

  function release(request: FastifyRequest): void {
    memory.release(request.reservedBytes);
    request.reservedBytes = 0;
  }

  function withScope(scope: Scope) {
    return (request: FastifyRequest, reply: FastifyReply, done: () => void) => {
      request.apiKey = authenticate(request, keys, scope);
      limiter.admit(request.apiKey);
      const bytes = bodyBytes(request, config.BODY_BYTES_MAX);
      if (!memory.reserve(bytes)) {
        limiter.refund(request.apiKey, 1);
        throw new Problem('overloaded', 'The service is busy; try again.', { retryAfter: RETRY_AFTER_SECONDS });
      }
      request.reservedBytes = bytes;
      // A body that is broken off is never answered; one that is complete always is, if only to nobody.
      reply.raw.once('close', () => {
        if (!request.raw.complete) release(request);
      });
      done();
    };
  }

  /** Publishes the rows of a request that has been counted as `count` against its key's rate. */
  async function publish(rows: readonly OutgoingRow[], key: ApiKey, count: number): Promise<void> {
    try {
      await publisher.publish(rows);
    } catch (error) {
      if (!(error instanceof PublishTimeout)) throw error;
      limiter.refund(key, count);
      throw new Problem('event_log_unavailable', 'The event log cannot be reached; send the request again.', {
        retryAfter: RETRY_AFTER_SECONDS,
        cause: error,
      });
    }
  }

  async function accept(
    request: FastifyRequest,
    reply: FastifyReply,
    submission: Submission,
    key: string | undefined,
  ): Promise<FastifyReply> {
    const { workspace } = request.apiKey;
    const { rows, uuids } = submissionRows(submission, { workspace, version: versions(), idempotencyKey: key });
    refuseLargeRows(rows, submission, config.EVENT_BYTES_MAX);
    limiter.recount(request.apiKey, submission.events.length);
    if (rows.length > 0) await publish(rows, request.apiKey, submission.events.length);
    acceptedEvents.inc(uuids.length);
    reply.code(202);
    return await reply.send({ status: 'accepted', events: uuids.map((uuid) => ({ uuid })) });
  }

  app.post(USER_GROUPS, { onRequest: withScope('ingest') }, async (request, reply) => {
    const { body, key } = validSubmission(schemas.quick.userGroup, request);
    const { foreignUserGroupId, foreignUserId, events, properties } = body;
    const submission: Submission = {
      subject: 'organization',
      userId: foreignUserId,
      groupId: foreignUserGroupId,
      events: events ?? [],
      properties,
    };
    return await accept(request, reply, submission, key);
  });

  app.post(PUBLIC_USERS, { onRequest: withScope('ingest') }, async (request, reply) => {
    const { body, key } = validSubmission(schemas.quick.user, request);
    const { foreignId, events, properties } = body;
    const submission: Submission = {
      subject: 'user',
      userId: foreignId,
      groupId: undefined,
      events: events ?? [],
      properties,
    };
    return await accept(request, reply, submission, key);
  });

  app.delete(USERS, { onRequest: withScope('delete') }, async (request, reply) => {
    const query = deletionQuery.safeParse(request.query);
    if (!query.success) throw invalidRequest(query.error.issues);
    const { foreignId } = query.data;
    const { workspace } = request.apiKey;
    const row = deletionRow(foreignId, { workspace, version: versions(), idempotencyKey: undefined });
    await publish([row], request.apiKey, 1);
    reply.code(202);
    return await reply.send({ status: 'accepted', foreignId });
  });

  registerReference(app, ingestDocument(config, schemas));
  refuseOtherMethods(app, {
    [USER_GROUPS]: ['POST'],
    [PUBLIC_USERS]: ['POST'],
    [USERS]: ['DELETE'],
    ...REFERENCE_PATHS,
  });
  return app;
}

/** What a request's body may come to in memory: the announced length, or the limit where that says too little. */
function bodyBytes(request: FastifyRequest, bytesMax: number): number {
  const announced = Number(request.headers['content-length'] ?? Number.NaN);
  const plain = request.headers['content-encoding'] === undefined && Number.isInteger(announced);
  if (plain) return Math.min(announced, bytesMax);
  return request.headers['transfer-encoding'] === undefined && Number.isNaN(announced) ? 0 : bytesMax;
}

function bodyOf(request: FastifyRequest): unknown {
  if (request.body === undefined) throw new Problem('malformed_json', 'A JSON body is needed.');
  return request.body;
}

/** The body and the Idempotency-Key; the faults of both are named together. */
function validSubmission<Schema extends z.ZodType>(
  schema: Schema,
  request: FastifyRequest,
): { readonly body: z.output<Schema>; readonly key: string | undefined } {
  const body = schema.safeParse(bodyOf(request));
  const key = idempotencyKey.safeParse(request.headers['idempotency-key']);
  if (body.success && key.success) return { body: body.data, key: key.data };
  throw invalidRequest([
    ...(key.error?.issues ?? []).map((issue) => ({ ...issue, path: ['Idempotency-Key'] })),
    ...(body.error?.issues ?? []),
  ]);
}

/** A row is one line of a message, so its size is bounded: an event's, and a property's of a user or organization. */
function refuseLargeRows(rows: readonly OutgoingRow[], { events, properties }: Submission, bytesMax: number): void {
  if (!rows.some(({ line }) => line.length > bytesMax / 3)) return;
  const tooLarge = (value: unknown) => Buffer.byteLength(JSON.stringify(value)) > bytesMax;
  const object = (text: string | undefined) => (text === undefined ? undefined : parseJson(text));
  const eventTooLarge = (event: SubmittedEvent) =>
    tooLarge({
      ...event,
      properties: object(event.properties),
      context: object(event.context),
      traits: object(event.traits),
    });
  const message = `must be at most ${bytesMax} bytes as JSON`;
  const errors = [
    ...events.flatMap((event, index) => (eventTooLarge(event) ? [`events.${index}`] : [])),
    ...Object.entries(properties ?? {}).flatMap((entry) =>
      tooLarge(entry) ? [`properties.${entry[0].slice(0, 100)}`] : [],
    ),
  ].map((path) => ({ path, code: 'too_large', message }));
  if (errors.length > 0) throw new Problem('body_too_large', 'A part of the body is too large.', { errors });
}
