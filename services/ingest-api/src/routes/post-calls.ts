import { unauthorized } from '@sluice/shared/http/authentication';
import { Problem } from '@sluice/shared/http/problem';
import { CALL_TYPES, type CallRoute } from '@sluice/submissions/calls/call';
import { type CallOutline, readCallOutline } from '@sluice/submissions/calls/call-outline';
import type { Pause } from '@sluice/submissions/reading/pause';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { registerAnyBodyReader } from '../http/body-reader.ts';
import { callKeyOf } from '../http/call-keys.ts';
import { type CallsRequest, type PostCallsOptions, publishCalls, readCallsRequest } from './calls-request.ts';
import { readIdempotencyKey } from './idempotency-key.ts';

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
    const { bodies, produceTimeoutMs } = this.#options;
    const body = request.body as Buffer | undefined;
    if (body === undefined) throw new Problem('malformed_json', 'A JSON body is needed.');
    const taken = await bodies.read(request.network ?? request.apiKey.workspace, body, (pause) =>
      this.#take(request, body, route, pause),
    );
    const timeoutMs = Math.min(produceTimeoutMs, HOLD_MS_MAX);
    return await publishCalls(request, reply, taken, this.#options, { accepted: { success: true }, timeoutMs });
  }

  async #take(request: FastifyRequest, body: Buffer, route: CallRoute, pause: Pause): Promise<CallsRequest> {
    const { admission, callsMax } = this.#options;
    const outline = await readCallOutline(body, route, callsMax, pause);
    this.#authenticate(request, outline);
    admission.admitEvents(request, outline.calls.length);
    const { key, issues } = readIdempotencyKey(request.headers['idempotency-key']);
    // A key that is not valid is ignored: these clients do not send one.
    const idempotencyKey = issues.length === 0 ? key : undefined;
    return await readCallsRequest(request, outline, { form: route, idempotencyKey }, this.#options, pause);
  }

  #authenticate(request: FastifyRequest, { writeKey }: CallOutline): void {
    if (request.apiKey) return;
    if (writeKey === undefined) {
      throw unauthorized('An API key is needed: as Authorization, as writeKey in the query, or in the body.');
    }
    this.#options.admission.admitBodyKey(request, writeKey);
  }
}
