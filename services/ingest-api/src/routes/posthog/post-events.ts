import { setTimeout as delay } from 'node:timers/promises';
import { Problem } from '@sluice/shared/http/problem';
import type { QueryParameters } from '@sluice/shared/http/query-string';
import type { CallOutline } from '@sluice/submissions/calls/call-outline';
import { jsonOfForm } from '@sluice/submissions/calls/posthog/form-data';
import { readPosthogOutline } from '@sluice/submissions/calls/posthog/posthog-outline';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { registerAnyBodyReader } from '../../http/body-reader.ts';
import { type PostCallsOptions, publishCalls, readCallsRequest } from '../calls-request.ts';
import { keyOf, renameUnauthorized } from './posthog-keys.ts';

/**
 * How long a request waits at most, for its key's rate and for Kafka, in milliseconds: less than the clients wait.
 * posthog-node gives up after 10 s.
 */
const HOLD_MS_MAX = 8_000;

/** How much of it a request may wait for its key's rate. */
export const HOLD_FOR_RATE_MS_MAX = 4_000;

/** How much it may wait for Kafka in any case. */
const PUBLISH_MS_MIN = 1_000;

/** How often a request that waits looks whether its key may send again. */
const RATE_POLL_MS = 100;

const MEGABYTE = 1_000_000;

/** The paths of one event or a few, and the largest body there, in bytes after decompression, as PostHog has it. */
export const EVENT_PATHS = ['/e', '/i/v0/e', '/capture'] as const;
export const EVENT_BODY_BYTES_MAX = 2 * MEGABYTE;

/** The path of batches, likewise. */
export const BATCH_PATH = '/batch';
export const BATCH_BODY_BYTES_MAX = 20 * MEGABYTE;

/**
 * The routes of PostHog's clients. A response is exactly `200`, since posthog-python and posthog-js send again what gets
 * another one, once Kafka has everything, with the events that were rejected, which Kafka has as well.
 */
export function registerPostEvents(app: FastifyInstance, options: PostCallsOptions): void {
  const events = new PostEvents(options);
  const register = (paths: readonly string[], bytesMax: number) => {
    app.register(async (instance) => {
      renameUnauthorized(instance);
      registerAnyBodyReader(instance, Math.min(bytesMax, options.bodyBytesMax));
      // The key is in the body. What may be elsewhere is looked at afterwards.
      const onRequest = options.admission.admitCalls(() => undefined);
      for (const path of paths) {
        instance.post(path, { onRequest }, (request, reply) => events.post(request, reply));
      }
    });
  };
  register(EVENT_PATHS, EVENT_BODY_BYTES_MAX);
  register([BATCH_PATH], BATCH_BODY_BYTES_MAX);
}

class PostEvents {
  readonly #options: PostCallsOptions;

  constructor(options: PostCallsOptions) {
    this.#options = options;
  }

  async post(request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
    const { bodies, produceTimeoutMs, callsMax } = this.#options;
    const heldUntil = performance.now() + HOLD_MS_MAX;
    const body = bodyOf(request);
    const turn = request.network ?? '';
    const read = await bodies.read(turn, body, (pause) => readPosthogOutline(body, callsMax, pause));
    const outline = { ...read, sentAt: read.sentAt ?? sentAtIn(request) };
    await this.#admit(request, outline);
    const taken = await bodies.read(request.apiKey.workspace, body, (pause) =>
      readCallsRequest(request, outline, { form: 'posthog', idempotencyKey: undefined }, this.#options, pause),
    );
    const timeoutMs = Math.min(produceTimeoutMs, Math.max(heldUntil - performance.now(), PUBLISH_MS_MIN));
    return await publishCalls(request, reply, taken, this.#options, { accepted: { status: 1 }, timeoutMs });
  }

  /** Waits a while for the key's rate: posthog-js drops what gets 429. */
  async #admit(request: FastifyRequest, { calls, writeKey }: CallOutline): Promise<void> {
    const { admission } = this.#options;
    const key = keyOf(request, writeKey);
    const heldUntil = performance.now() + HOLD_FOR_RATE_MS_MAX;
    while (admission.secondsLeft(key) > 0 && performance.now() < heldUntil) await delay(RATE_POLL_MS);
    admission.admitBodyKey(request, key);
    admission.admitEvents(request, calls.length);
  }
}

/** Older versions of posthog-js have the time at which they send in the query: `?_=1772366400000`. */
function sentAtIn(request: FastifyRequest): string | undefined {
  return (request.query as QueryParameters)['_']?.[0];
}

/** Returns the JSON of the body. @throws {Problem} `malformed_json` */
export function bodyOf(request: FastifyRequest): Buffer {
  const body = request.body as Buffer | undefined;
  if (body === undefined) throw new Problem('malformed_json', 'A JSON body is needed.');
  return jsonOfForm(body);
}
