import { Problem } from '@sluice/shared/http/problem';
import type { FastifyReply, FastifyRequest } from 'fastify';

/** How long ingest-api may take, in milliseconds: longer than it waits for Kafka. */
const TIMEOUT_MS = 30_000;

/** Seconds after which a client should send its request again when ingest-api cannot be reached. */
const RETRY_AFTER_SECONDS = 5;

/** Headers of the response that the client gets as they came. */
const PASSED_ON = ['content-type', 'retry-after'] as const;

/** What is sent to ingest-api. */
export interface Forwarded {
  readonly method: 'POST' | 'DELETE';
  /** From behind the address of ingest-api, with its query: `/v1/batch`. */
  readonly path: string;
  /** Sent as JSON. Default: no body. */
  readonly body?: object;
}

/**
 * Sends something to an ingest-api with the key of a request, since ingest-api alone writes to Kafka. A client that has gone does
 * not end it.
 *
 * @param ingestUrl the address of an ingest-api
 * @throws {Problem} `event_log_unavailable` without a response
 */
export async function forward(
  ingestUrl: string,
  { headers, id }: Pick<FastifyRequest, 'headers' | 'id'>,
  { method, path, body }: Forwarded,
): Promise<Response> {
  return await fetch(`${ingestUrl.replace(/\/+$/, '')}${path}`, {
    method,
    headers: {
      ...{ authorization: headers.authorization ?? '', 'x-request-id': id },
      ...(body && { 'content-type': 'application/json' }),
    },
    ...(body && { body: JSON.stringify(body) }),
    redirect: 'error',
    signal: AbortSignal.timeout(TIMEOUT_MS),
  }).catch((cause: unknown) => {
    throw new Problem('event_log_unavailable', 'ingest-api does not respond; what was sent may be in force already.', {
      retryAfter: RETRY_AFTER_SECONDS,
      cause,
    });
  });
}

/**
 * Responds as an ingest-api does to what a key with the scope `delete` asks for.
 *
 * @param ingestUrls addresses of ingest-apis, each of which can do it
 * @param what is to be sent to one of them where query-api knows none
 * @throws {Problem} `deletions_not_available` then; otherwise as {@link forward} does
 */
export async function passDeletionOn(
  [ingestUrl]: readonly string[],
  { request, reply }: { readonly request: FastifyRequest; readonly reply: FastifyReply },
  what: string,
  forwarded: Forwarded,
): Promise<FastifyReply> {
  if (ingestUrl === undefined) {
    throw new Problem('deletions_not_available', `query-api knows no ingest-api: send ${what} to that.`);
  }
  return await passOn(await forward(ingestUrl, request, forwarded), reply);
}

/** Returns the query of a request as it was sent, with its question mark. */
export function queryAsSent({ url }: Pick<FastifyRequest, 'url'>): string {
  const start = url.indexOf('?');
  return start < 0 ? '' : url.slice(start);
}

/** Responds as ingest-api did. */
export async function passOn(response: Response, reply: FastifyReply): Promise<FastifyReply> {
  for (const name of PASSED_ON) {
    const value = response.headers.get(name);
    if (value !== null) reply.header(name, value);
  }
  reply.code(response.status);
  return await reply.send(Buffer.from(await response.arrayBuffer()));
}
