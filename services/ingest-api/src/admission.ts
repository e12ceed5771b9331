import { authenticate } from '@sluice/shared/http/authentication';
import { Problem } from '@sluice/shared/http/problem';
import { createRateLimiter } from '@sluice/shared/http/rate-limiter';
import type { ApiKey } from '@sluice/shared/keys/key-ring';
import type { Scope } from '@sluice/shared/keys/keys-file';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { Gauge } from 'prom-client';
import type { IngestDependencies } from './app.ts';
import type { IngestConfig } from './config.ts';
import { createMemoryBudget, type Reservation } from './memory-budget.ts';
import { eventLogUnavailable, overloaded, RETRY_AFTER_SECONDS } from './problems.ts';

/** What a request takes before anything of its body has arrived: its socket, headers and objects. */
const REQUEST_BYTES = 16 * 1_024;

/** What an ordinary body becomes, as a multiple of its bytes: the body itself and its rows. */
const BECOMES = 2.5;

declare module 'fastify' {
  interface FastifyRequest {
    apiKey: ApiKey;
    /** What the request has been counted as against its key's rate; 0 until it is counted. */
    counted: number;
    /** The memory that the request holds; `undefined` on routes that need no key. */
    reservation: Reservation | undefined;
  }
}

export interface Admission {
  /** A hook that lets a request in before its body is read: the key, the clock, the rate, and memory. */
  admit(scope: Scope): (request: FastifyRequest, reply: FastifyReply, done: () => void) => void;
  /** Counts an admitted request as its `events`. @throws {Problem} `rate_limited` */
  recount(request: FastifyRequest, events: number): void;
}

/** Decides which requests are taken up, and sees to it that each gives back the memory that it holds. */
export function createAdmission(app: FastifyInstance, config: IngestConfig, deps: IngestDependencies): Admission {
  const { keys, clock, registry } = deps;
  const limiter = createRateLimiter({ perSecondDefault: config.RATE_LIMIT_DEFAULT, registry });
  const memory = createMemoryBudget(config.PENDING_BYTES_MAX);
  new Gauge({
    name: 'sluice_ingest_reserved_bytes',
    help: 'Memory reserved by requests that are under way.',
    registers: [registry],
    collect() {
      this.set(memory.reservedBytes);
    },
  });
  new Gauge({
    name: 'sluice_ingest_memory_budget_bytes',
    help: 'Memory that requests may reserve together.',
    registers: [registry],
  }).set(config.PENDING_BYTES_MAX);
  app.decorateRequest('apiKey');
  app.decorateRequest('counted', 0);
  app.decorateRequest('reservation');
  app.addHook('onSend', (request, reply, _payload, done) => {
    request.reservation?.release();
    if (reply.statusCode === 503) {
      // A request that this service could not serve does not count against the key's rate.
      if (request.counted > 0) limiter.refund(request.apiKey, request.counted);
      // Node passes over the rest of a body that was refused half-way, so that its sender hears of it.
      reply.removeHeader('connection');
    }
    done();
  });

  return {
    recount(request, events) {
      limiter.recount(request.apiKey, events);
      request.counted = Math.max(events, 1);
    },
    admit: (scope) => (request, reply, done) => {
      const key = authenticate(request, keys, scope);
      request.apiKey = key;
      if (!clock.isCompared) throw eventLogUnavailable();
      if (clock.fault() !== undefined) {
        throw new Problem('clock_skewed', 'This instance cannot tell the time; send the request again.', {
          retryAfter: RETRY_AFTER_SECONDS,
        });
      }
      limiter.admit(key);
      request.counted = 1;
      const reservation = memory.open(key);
      const announced = Math.min(Number(request.headers['content-length'] ?? 0), config.BODY_BYTES_MAX);
      // Before the body is sent in vain. It is not reserved: it may never come.
      if (!reservation.fits(BECOMES * announced) || !reservation.grow(REQUEST_BYTES)) throw overloaded();
      request.reservation = reservation;
      // A body that is broken off is never answered; one that is complete always is, if only to nobody.
      reply.raw.once('close', () => {
        if (!request.raw.complete) reservation.release();
      });
      done();
    },
  };
}
