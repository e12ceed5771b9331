import { acceptJsonBodies } from '@sluice/shared/http/json-body';
import { type MemoryBudget, REQUEST_BYTES, type Reservation } from '@sluice/shared/http/memory-budget';
import { onResponseEnd } from '@sluice/shared/http/response-end';
import { parseJson } from '@sluice/shared/text/json';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { QueryConfig } from '../config.ts';
import { COMPRESSED_BYTES_MIN, COMPRESSOR_BYTES } from './compression.ts';
import { overloaded } from './overloaded.ts';
import type { Reader } from './workspace.ts';

/** The memory of parameters as a multiple of the address: their texts, the filters, and the SQL of these. */
const MEMORY_PER_ADDRESS = 8;

/** The memory of a body as a multiple of its bytes: the body, its texts, and what is sent to ClickHouse. */
const MEMORY_PER_BODY = 6;

/** How much longer than its queries a client may read what is left of a response, in milliseconds. */
const READING_MS_MAX = 60_000;

declare module 'fastify' {
  interface FastifyRequest {
    /** The memory that the request holds until its response is sent. */
    memory: Reservation;
  }
  interface FastifyContextConfig {
    /** Whether the response may take any time. Default: its client is cut off. */
    endless?: boolean;
  }
}

/** The memory budget has no room for more of a request. */
export class MemoryRefused extends Error {
  override readonly name = 'MemoryRefused';
}

/**
 * Reserves memory of a request.
 *
 * @param memory `undefined` for what belongs to no request
 * @throws {Problem} `overloaded`
 */
export function reserve(memory: Reservation | undefined, bytes: number): void {
  if (memory && !memory.grow(bytes)) throw overloaded(new MemoryRefused('the memory of all requests is used up'));
}

/**
 * Has routes take bodies as {@link acceptJsonBodies} does, whose memory is reserved before they are read.
 *
 * @param bytesMax the largest body; one that does not announce its size counts as so large. Without either header there is none
 */
export function acceptJson(routes: FastifyInstance, bytesMax: number): void {
  acceptJsonBodies(routes, parseJson);
  routes.addHook('preParsing', async ({ headers, memory }) => {
    const announced = Number(headers['content-length'] ?? (headers['transfer-encoding'] === undefined ? 0 : bytesMax));
    reserve(memory, MEMORY_PER_BODY * Math.min(announced, bytesMax));
  });
}

/** Lets requests hold memory. */
export class RequestMemory {
  readonly #budget: MemoryBudget;
  readonly #timeoutMs: number;

  constructor(budget: MemoryBudget, config: Pick<QueryConfig, 'QUERY_TIMEOUT_MS' | 'COUNT_TIMEOUT_MS'>) {
    this.#budget = budget;
    // Queries may run for one half, and wait for the other.
    this.#timeoutMs = 2 * (config.QUERY_TIMEOUT_MS + config.COUNT_TIMEOUT_MS) + READING_MS_MAX;
  }

  /** Sends responses of an app uncompressed while there is no memory for compressing them. Call it before the routes. */
  register(app: FastifyInstance): void {
    app.decorateRequest('memory');
    app.addHook('onSend', (request, reply, payload, done) => {
      // The plugin that compresses reads this header.
      if (mayBeCompressed(reply, payload) && !request.memory?.grow(COMPRESSOR_BYTES)) {
        request.headers['x-no-compression'] = 'true';
      }
      done();
    });
  }

  /**
   * Reserves the memory of a request that begins; it is released when the response is sent or the client has left. A client
   * that does not read its response is cut off.
   *
   * @throws {Problem} `overloaded`
   */
  open(request: FastifyRequest, reply: FastifyReply, reader: Reader): void {
    const memory = this.#budget.open(reader);
    request.memory = memory;
    const { endless = false } = request.routeOptions.config;
    onResponseEnd(reply, () => memory.release(), endless ? undefined : this.#timeoutMs);
    reserve(memory, REQUEST_BYTES + MEMORY_PER_ADDRESS * request.url.length);
  }
}

function mayBeCompressed(reply: FastifyReply, payload: unknown): boolean {
  const isShort = (typeof payload === 'string' || Buffer.isBuffer(payload)) && payload.length < COMPRESSED_BYTES_MIN;
  const isStream = reply.getHeader('content-type') === 'text/event-stream';
  return !isShort && !isStream && /zstd|br|gzip|\*/i.test(String(reply.request.headers['accept-encoding']));
}
