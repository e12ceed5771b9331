import { Problem } from '@sluice/shared/http/problem';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { Counter } from 'prom-client';

/** A recording of a session may be this large for PostHog, in bytes. */
export const IGNORED_BODY_BYTES_MAX = 20_000_000;

/**
 * Registers a path whose requests are counted and otherwise ignored: they need no key, and their bodies are read to the
 * end, up to a limit, and not kept. The response is `200` with `answer`.
 */
export function ignoreRequests(
  app: FastifyInstance,
  route: { readonly method: 'GET' | 'POST'; readonly url: string },
  answer: object,
  count: Pick<Counter, 'inc'>,
): void {
  app.route({
    ...route,
    // In a hook, so that no parser looks at the body.
    onRequest: async (request, reply) => {
      await discardBody(request);
      count.inc();
      return await reply.code(200).send(answer);
    },
    handler: async () => undefined,
  });
}

async function discardBody({ raw }: FastifyRequest): Promise<void> {
  let bytes = Number(raw.headers['content-length'] ?? 0);
  if (bytes <= IGNORED_BODY_BYTES_MAX) bytes = await sizeOfBody(raw);
  if (bytes > IGNORED_BODY_BYTES_MAX)
    throw new Problem('body_too_large', 'The body is larger than this service accepts.');
}

/** Reads a body to its end, or until it is larger than allowed. */
async function sizeOfBody(body: FastifyRequest['raw']): Promise<number> {
  let bytes = 0;
  try {
    for await (const chunk of body.iterator({ destroyOnReturn: false })) {
      bytes += (chunk as Buffer).length;
      if (bytes > IGNORED_BODY_BYTES_MAX) break;
    }
  } catch (cause) {
    throw new Problem('invalid_request', 'The connection closed before the body was complete.', { cause });
  }
  return bytes;
}
