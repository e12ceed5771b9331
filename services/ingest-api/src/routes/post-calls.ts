import { unauthorized } from '@sluice/shared/http/authentication';
import { ERRORS_MAX, Problem } from '@sluice/shared/http/problem';
import { CALL_TYPES, type CallRoute } from '@sluice/submissions/calls/call';
import { type CallOutline, readCallOutline } from '@sluice/submissions/calls/call-outline';
import { type CallRowsOptions, collectCalls, type RejectedIndex } from '@sluice/submissions/calls/call-rows';
import type { Pause } from '@sluice/submissions/pause';
import { type PartitionRows, RowCollector } from '@sluice/submissions/rows/row-collector';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Admission } from '../http/admission.ts';
import { registerAnyBodyReader } from '../http/body-reader.ts';
import { callKeyOf } from '../http/call-keys.ts';
import type { Turns } from '../http/turns.ts';
import type { RowPublisher } from '../kafka/row-publisher.ts';
import type { IngestMetrics } from '../metrics.ts';
import { readIdempotencyKey } from './idempotency-key.ts';
import { publishRows } from './publish-rows.ts';
import type { VersionClock } from './version-clock.ts';

/**
 * How long a request waits for Kafka at most, in milliseconds: less than the clients wait. `@segment/analytics-node` gives
 * up after 10 s, and after an error it sends again only within 0.7 s, whatever `Retry-After` says.
 */
const HOLD_MS_MAX = 8_000;

/** The paths of calls, and what each takes. */
export const CALL_PATHS: Readonly<Record<string, CallRoute>> = {
  '/v1/batch': 'batch',
  '/v1/b': 'batch',
  '/v1/import': 'batch',
  '/beacon/v1/batch': 'batch',
  ...Object.fromEntries(CALL_TYPES.flatMap((type) => [[`/v1/${type}`, type] as const, [`/v1/${type[0]}`, type]])),
};

export interface PostCallsOptions extends Pick<CallRowsOptions, 'callBytesMax' | 'propertiesMax' | 'now'> {
  readonly admission: Admission;
  readonly turns: Turns;
  readonly publisher: RowPublisher;
  readonly versions: VersionClock;
  readonly metrics: Pick<IngestMetrics, 'acceptedEvents' | 'rejectedCalls'>;
  /** The number of partitions of each topic. */
  readonly partitionCount: number;
  readonly bodyBytesMax: number;
  readonly callsMax: number;
  readonly produceTimeoutMs: number;
}

/**
 * The routes of the clients that people already have, of Segment and of RudderStack. A response is `200` once Kafka has
 * everything, with the calls that were rejected, which Kafka has as well.
 */
export function registerPostCalls(app: FastifyInstance, options: PostCallsOptions): void {
  app.register(async (instance) => {
    registerAnyBodyReader(instance, options.bodyBytesMax);
    const onRequest = options.admission.admitCalls(callKeyOf);
    const calls = new PostCalls(options);
    for (const [path, route] of Object.entries(CALL_PATHS)) {
      instance.post(path, { onRequest }, (request, reply) => calls.post(request, reply, route));
    }
  });
}

class PostCalls {
  readonly #options: PostCallsOptions;

  constructor(options: PostCallsOptions) {
    this.#options = options;
  }

  async post(request: FastifyRequest, reply: FastifyReply, route: CallRoute): Promise<FastifyReply> {
    const { publisher, metrics, turns, produceTimeoutMs } = this.#options;
    const body = request.body as Buffer | undefined;
    if (body === undefined) throw new Problem('malformed_json', 'A JSON body is needed.');
    const { rows, calls, rejected } = await turns.read(request.network ?? request.apiKey.workspace, body, (pause) =>
      this.#createRows(request, body, route, pause),
    );
    // The rows hold everything that is needed. The body, which may be much larger, can go.
    request.body = undefined;
    const timeoutMs = Math.min(produceTimeoutMs, HOLD_MS_MAX);
    if (rows.length > 0) await publishRows(publisher, request, rows, timeoutMs);
    metrics.acceptedEvents.inc(calls - rejected.length);
    if (rejected.length > 0) metrics.rejectedCalls.inc(rejected.length);
    reply.code(200).type('application/json; charset=utf-8');
    return reply.send(responseBody(rejected));
  }

  async #createRows(
    request: FastifyRequest,
    body: Buffer,
    route: CallRoute,
    pause: Pause,
  ): Promise<{ rows: readonly PartitionRows[]; calls: number; rejected: RejectedIndex[] }> {
    const { admission, versions, partitionCount, callsMax, callBytesMax, propertiesMax, now } = this.#options;
    const outline = await readCallOutline(body, route, callsMax, pause);
    this.#authenticate(request, outline);
    admission.admitEvents(request, outline.calls.length);
    const { key, issues } = readIdempotencyKey(request.headers['idempotency-key']);
    const collector = new RowCollector(partitionCount, admission.rowMemory(request));
    const rejected = await collectCalls(
      outline,
      collector,
      {
        ...{ callBytesMax, propertiesMax, now, form: route },
        versions: () => versions.next(),
        workspace: request.apiKey.workspace,
        // A key that is not valid is ignored: these clients do not send one.
        idempotencyKey: issues.length === 0 ? key : undefined,
      },
      pause,
    );
    const rows = collector.finish();
    request.reservation?.shrink(body.length);
    return { rows, calls: outline.calls.length, rejected };
  }

  #authenticate(request: FastifyRequest, { writeKey }: CallOutline): void {
    if (request.apiKey) return;
    if (writeKey === undefined) {
      throw unauthorized('An API key is needed: as Authorization, as writeKey in the query, or in the body.');
    }
    this.#options.admission.admitBodyKey(request, writeKey);
  }
}

/** The JSON of the response. Of many rejected calls it names the first. */
function responseBody(rejected: readonly RejectedIndex[]): string {
  if (rejected.length === 0) return '{"success":true}';
  return JSON.stringify({
    success: true,
    rejected: rejected.slice(0, ERRORS_MAX),
    rejectedCount: rejected.length,
  });
}
