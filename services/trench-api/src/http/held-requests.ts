import { bearerOf, unauthorized } from '@sluice/shared/http/authentication';
import { type MemoryBudget, REQUEST_BYTES, type Reservation } from '@sluice/shared/http/memory-budget';
import { Problem } from '@sluice/shared/http/problem';
import type { FastifyInstance, FastifyRequest } from 'fastify';

/** The memory of a body or a response as a multiple of its bytes: the bytes, their text, its values, and what is sent. */
const MEMORY_PER_BYTE = 4;

const RETRY_AFTER_SECONDS = 1;

declare module 'fastify' {
  interface FastifyRequest {
    /** The key that the request sends, whether it is valid or not. */
    key: string;
    /** The memory that the request holds until its response is sent. */
    memory: Reservation;
  }
}

/**
 * Has each request of an app send a key and reserve memory before its body is read, until its response is sent or its client
 * has left.
 *
 * @param bodyBytesMax what a body counts as that does not announce its size
 */
export function holdRequests(app: FastifyInstance, budget: MemoryBudget, bodyBytesMax: number): void {
  app.decorateRequest('key', '');
  // The hook below opens one for each request.
  app.decorateRequest('memory');
  app.addHook('onRequest', async (request, reply) => {
    // What a workspace has is for whoever holds its key, and may be deleted.
    reply.header('cache-control', 'no-store');
    request.key = keyOf(request);
    request.memory = budget.open({ hash: request.key, workspace: request.key });
    reply.raw.once('close', () => request.memory.release());
    reserve(request, REQUEST_BYTES);
  });
  app.addHook('preParsing', async (request) => {
    const { headers } = request;
    const announced =
      headers['transfer-encoding'] === undefined ? Number(headers['content-length'] ?? 0) : bodyBytesMax;
    reserve(request, MEMORY_PER_BYTE * Math.min(announced, bodyBytesMax));
  });
}

/** Reserves the memory of a part of a response. @throws {Problem} `overloaded` */
export function reserveResponse(request: FastifyRequest, bytes: number): void {
  reserve(request, MEMORY_PER_BYTE * bytes);
}

function reserve({ memory }: FastifyRequest, bytes: number): void {
  if (memory.grow(bytes)) return;
  throw new Problem('overloaded', 'The service has no memory for the request now; send it again.', {
    retryAfter: RETRY_AFTER_SECONDS,
  });
}

/**
 * Returns the key of a request. Whether it is valid is for the service to say that gets it.
 *
 * @throws {Problem} `unauthorized` without one: query-api may serve a workspace without a key, and Trench never does
 */
function keyOf(request: FastifyRequest): string {
  const key = bearerOf(request);
  if (key === undefined) throw unauthorized('An API key is needed: send "Authorization: Bearer <key>".');
  return key;
}
