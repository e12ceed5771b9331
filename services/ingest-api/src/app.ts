import cors from '@fastify/cors';
import { invalidRequest, Problem } from '@sluice/shared/http/problem';
import { REFERENCE_PATHS, registerReference } from '@sluice/shared/http/reference';
import { createHttpServer, refuseOtherMethods } from '@sluice/shared/http/server';
import type { ApiKey, KeyRing } from '@sluice/shared/keys/key-ring';
import type { Logger } from '@sluice/shared/log';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { Counter, type Registry } from 'prom-client';
import { z } from 'zod';
import { createAdmission } from './admission.ts';
import { registerBodyReader } from './body-reader.ts';
import type { BrokerClock } from './broker-clock.ts';
import { type IngestConfig, ROWS_PER_BODY_MAX } from './config.ts';
import { ingestDocument } from './openapi.ts';
import { eventLogUnavailable, overloaded } from './problems.ts';
import { createRowGatherer, type PartitionRows } from './row-packing.ts';
import { PublishTimeout, type RowPublisher } from './row-publisher.ts';
import { deletionParameters, idempotencyKey, type SubmissionRoute, submissionSchemas } from './submission.ts';
import { createSubmissionReader } from './submission-reader.ts';
import { deletionRow, estimateRowBytes, gatherRows } from './submission-rows.ts';
import { createTurns, type Pause } from './turns.ts';
import type { VersionClock } from './version-clock.ts';

const USER_GROUPS = '/v1/public/userGroups';
const PUBLIC_USERS = '/v1/public/users';
const USERS = '/v1/users';

/** A body of at most this many bytes is read at once; larger ones wait for their turn and pause. */
const READ_AT_ONCE_BYTES_MAX = 64 * 1_024;

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
  readonly clock: Pick<BrokerClock, 'fault' | 'isCompared'>;
  readonly logger: Logger;
  readonly registry: Registry;
  readonly versions: VersionClock;
  readonly now: () => number;
  readonly readiness: () => Promise<readonly string[]>;
}

/** Builds ingest-api's HTTP server: validates submissions, stamps them, and answers once Kafka has their rows. */
export function buildApp(config: IngestConfig, deps: IngestDependencies): FastifyInstance {
  const { publisher, logger, registry, versions, now, readiness } = deps;
  const app = createHttpServer({ logger, registry, readiness, bodyLimit: config.BODY_BYTES_MAX });
  const limits = {
    eventsMax: config.EVENTS_PER_SUBMISSION_MAX,
    propertiesMax: config.PROPERTIES_PER_SUBMISSION_MAX,
    now,
  };
  const schemas = submissionSchemas(limits);
  const reader = createSubmissionReader({ ...limits, schemas, eventBytesMax: config.EVENT_BYTES_MAX });
  const turns = createTurns();
  const partitionCounts = { events: config.KAFKA_PARTITIONS, entities: config.KAFKA_PARTITIONS };
  const acceptedEvents = new Counter({
    name: 'sluice_ingest_events_accepted_total',
    help: 'Events acknowledged by Kafka.',
    registers: [registry],
  });

  registerBodyReader(app, config.BODY_BYTES_MAX);
  if (config.CORS_ORIGINS.length > 0) {
    app.register(cors, {
      origin: [...config.CORS_ORIGINS],
      methods: ['POST'],
      allowedHeaders: ['authorization', 'content-type', 'content-encoding', 'idempotency-key', 'x-request-id'],
      exposedHeaders: ['x-request-id', 'retry-after'],
      maxAge: 86_400,
    });
  }
  const { admit, recount } = createAdmission(app, config, deps);

  async function publish(rows: readonly PartitionRows[], { workspace }: ApiKey): Promise<void> {
    try {
      await publisher.publish(workspace, rows);
    } catch (error) {
      throw error instanceof PublishTimeout ? eventLogUnavailable(error) : error;
    }
  }

  /** Reads the body and makes rows of it. From then on the request holds the memory of its rows alone. */
  async function readRows(request: FastifyRequest, body: Buffer, route: SubmissionRoute, pause: Pause) {
    const { reservation } = request;
    const { workspace } = request.apiKey;
    const header = idempotencyKey.safeParse(request.headers['idempotency-key']);
    const faults = (header.error?.issues ?? []).map((issue) => ({ ...issue, path: ['Idempotency-Key'] }));
    const submission = await reader.read(body, route, faults, pause);
    const bytes = estimateRowBytes(submission, body.length);
    const bytesMax = ROWS_PER_BODY_MAX * config.BODY_BYTES_MAX;
    if (bytes > bytesMax) throw rowsTooLarge(bytes, bytesMax);
    if (!reservation?.grow(bytes)) throw overloaded();
    recount(request, submission.events.length);
    const gatherer = createRowGatherer(partitionCounts);
    const acceptance = { workspace, version: versions(), idempotencyKey: header.data };
    const uuids = await gatherRows(submission, acceptance, gatherer, pause);
    reservation.shrink(body.length);
    return { rows: gatherer.finish(), uuids };
  }

  async function accept(request: FastifyRequest, reply: FastifyReply, route: SubmissionRoute): Promise<FastifyReply> {
    const body = request.body as Buffer | undefined;
    if (body === undefined) throw new Problem('malformed_json', 'A JSON body is needed.');
    const isSmall = body.length <= READ_AT_ONCE_BYTES_MAX;
    const { rows, uuids } = await (isSmall
      ? readRows(request, body, route, () => undefined)
      : turns.take(request.apiKey.workspace, (pause) => readRows(request, body, route, pause)));
    // The rows hold all that is needed; a body may be much larger.
    request.body = undefined;
    if (rows.length > 0) await publish(rows, request.apiKey);
    acceptedEvents.inc(uuids.length);
    reply.code(202);
    return await reply.send({ status: 'accepted', events: uuids.map((uuid) => ({ uuid })) });
  }

  app.post(USER_GROUPS, { onRequest: admit('ingest') }, (request, reply) => accept(request, reply, 'userGroup'));
  app.post(PUBLIC_USERS, { onRequest: admit('ingest') }, (request, reply) => accept(request, reply, 'user'));

  app.delete(USERS, { onRequest: admit('delete') }, async (request, reply) => {
    const query = deletionQuery.safeParse(request.query);
    if (!query.success) throw invalidRequest(query.error.issues);
    const { foreignId } = query.data;
    const gatherer = createRowGatherer(partitionCounts);
    gatherer.add(deletionRow(foreignId, request.apiKey.workspace, versions()));
    await publish(gatherer.finish(), request.apiKey);
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

function rowsTooLarge(bytes: number, bytesMax: number): Problem {
  const message = `comes to about ${bytes} bytes of rows, of at most ${bytesMax}: each row repeats the identifiers`;
  return new Problem('body_too_large', 'The submission is too large: send it in parts.', {
    errors: [{ path: '', code: 'too_large', message }],
  });
}
