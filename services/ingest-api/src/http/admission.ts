import { authenticate, findKey } from '@sluice/shared/http/authentication';
import { Problem } from '@sluice/shared/http/problem';
import type { RateLimiter } from '@sluice/shared/http/rate-limiter';
import type { ApiKey, KeyRing } from '@sluice/shared/keys/key-ring';
import type { Scope } from '@sluice/shared/keys/keys-file';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { BrokerClock } from '../kafka/broker-clock.ts';
import type { MemoryBudget, Reservation } from './memory-budget.ts';
import { eventLogUnavailable, overloaded, RETRY_AFTER_SECONDS } from './problems.ts';

/** What a request takes before anything of its body has arrived: its socket, headers and objects. */
const REQUEST_BYTES = 16 * 1_024;

/** The memory of an ordinary request as a multiple of its body: the body itself and its rows. */
const MEMORY_PER_BODY = 2.5;

/** The account of memory of requests whose key is not known yet. No key and no workspace has an empty name. */
const NO_KEY = { hash: '', workspace: '' };

declare module 'fastify' {
  interface FastifyRequest {
    apiKey: ApiKey;
    /** How much of its key's rate the request has used; 0 until it is charged. */
    counted: number;
    /** The memory that the request holds; `undefined` on routes that need no key. */
    reservation: Reservation | undefined;
  }
}

export interface AdmissionOptions {
  readonly keys: KeyRing;
  readonly clock: Pick<BrokerClock, 'fault' | 'isCompared'>;
  readonly limiter: RateLimiter;
  readonly memory: MemoryBudget;
  readonly bodyBytesMax: number;
}

/**
 * Decides whether a request is read at all. The checks, in this order:
 *
 * 1. key: it is known and has the scope;
 * 2. clock: it agrees with Kafka's, because the versions of rows come from it;
 * 3. rate: the key may send one more request;
 * 4. memory: there is room for the announced body and its rows.
 *
 * Afterwards the request reserves memory as it grows: for its body in body-reader.ts, for its rows in `admitRows`. When
 * the response is sent, or the connection breaks, the memory is released. A response of 503 costs the key no rate.
 */
export class Admission {
  readonly #options: AdmissionOptions;

  constructor(options: AdmissionOptions) {
    this.#options = options;
  }

  /** Adds to the app what admission keeps on each request, and releases it with the response. Call it before the routes. */
  register(app: FastifyInstance): void {
    app.decorateRequest('apiKey');
    app.decorateRequest('counted', 0);
    app.decorateRequest('reservation');
    app.addHook('onSend', (request, reply, _payload, done) => {
      request.reservation?.release();
      if (reply.statusCode === 503) {
        if (request.counted > 0) this.#options.limiter.refund(request.apiKey, request.counted);
        // Node then discards the rest of a body that was refused half-way, so that the client reads the response.
        reply.removeHeader('connection');
      }
      done();
    });
  }

  /**
   * Creates the hook that admits requests before their bodies are read. It throws the problems `unauthorized`,
   * `missing_scope`, `keys_unavailable`, `event_log_unavailable`, `clock_skewed`, `rate_limited` and `overloaded`.
   */
  admit(scope: Scope): (request: FastifyRequest, reply: FastifyReply, done: () => void) => void {
    const { keys } = this.#options;
    return (request, reply, done) => {
      this.#admitKey(request, authenticate(request, keys, scope));
      this.#reserve(request, reply, request.apiKey);
      done();
    };
  }

  /**
   * Creates the hook that admits requests whose API key may be in the body. `tokenOf` returns the key that a request has
   * outside of its body. Without one, all such requests share one account of memory until `admitBodyKey` is called.
   */
  admitCalls(
    tokenOf: (request: FastifyRequest) => string | undefined,
  ): (request: FastifyRequest, reply: FastifyReply, done: () => void) => void {
    return (request, reply, done) => {
      const token = tokenOf(request);
      if (token === undefined) this.#checkClock();
      else this.#admitKey(request, findKey(token, this.#options.keys, 'ingest'));
      this.#reserve(request, reply, token === undefined ? NO_KEY : request.apiKey);
      done();
    };
  }

  /** Admits a request by the key that its body has. Throws what the hooks throw. */
  admitBodyKey(request: FastifyRequest, token: string): void {
    const { keys, memory } = this.#options;
    this.#admitKey(request, findKey(token, keys, 'ingest'));
    const bytes = request.reservation?.bytes ?? 0;
    request.reservation?.release();
    const reservation = memory.open(request.apiKey);
    if (!reservation.grow(bytes)) throw overloaded();
    request.reservation = reservation;
  }

  /**
   * Reserves memory for a submission's rows, and charges its key for its events instead of one request.
   *
   * @throws {Problem} `overloaded`, `rate_limited`
   */
  admitRows(request: FastifyRequest, rowBytes: number, events: number): void {
    this.admitMemory(request, rowBytes);
    this.admitEvents(request, events);
  }

  /** Reserves memory for rows. @throws {Problem} `overloaded` */
  admitMemory(request: FastifyRequest, rowBytes: number): void {
    if (!request.reservation?.grow(rowBytes)) throw overloaded();
  }

  /** Charges the key of a request for its events instead of one request. @throws {Problem} `rate_limited` */
  admitEvents(request: FastifyRequest, events: number): void {
    this.#options.limiter.recount(request.apiKey, events);
    request.counted = Math.max(events, 1);
  }

  #admitKey(request: FastifyRequest, key: ApiKey): void {
    request.apiKey = key;
    this.#checkClock();
    this.#options.limiter.admit(key);
    request.counted = 1;
  }

  #checkClock(): void {
    const { clock } = this.#options;
    if (!clock.isCompared) throw eventLogUnavailable();
    if (clock.fault() !== undefined) {
      throw new Problem('clock_skewed', 'The clock of this instance is wrong; send the request again.', {
        retryAfter: RETRY_AFTER_SECONDS,
      });
    }
  }

  #reserve(request: FastifyRequest, reply: FastifyReply, account: Pick<ApiKey, 'hash' | 'workspace'>): void {
    const { memory, bodyBytesMax } = this.#options;
    const reservation = memory.open(account);
    const announced = Math.min(Number(request.headers['content-length'] ?? 0), bodyBytesMax);
    // Refuses a body that does not fit before it is sent. Its memory is not reserved yet: the body may never come.
    if (!reservation.fits(MEMORY_PER_BODY * announced) || !reservation.grow(REQUEST_BYTES)) throw overloaded();
    request.reservation = reservation;
    // A request whose body breaks off gets no response. One whose body is complete always does.
    reply.raw.once('close', () => {
      if (!request.raw.complete) request.reservation?.release();
    });
  }
}
