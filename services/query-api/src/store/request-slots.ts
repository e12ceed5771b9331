import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { QueryConfig } from '../config.ts';
import { reserve } from '../http/http.ts';
import type { QueryMetrics, RequestPool } from '../metrics.ts';
import { outcomeOf, queryProblem } from './query-error.ts';
import { QuerySlots } from './query-slots.ts';

/**
 * How many requests that read or store something beside events run at once, in all and of one workspace, by what they do.
 * `revocations` wait for nothing else. What takes as long as a receiver, a stream or another service keeps no list waiting.
 */
const SLOTS = {
  documents: { running: 8, runningOfWorkspace: 2 },
  revocations: { running: 4, runningOfWorkspace: 1 },
  webhooks: { running: 8, runningOfWorkspace: 2 },
  forwarded: { running: 8, runningOfWorkspace: 2 },
} as const satisfies Record<RequestPool, object>;

/** How many statements about state may run at once for requests: each has one at a time. */
export const REQUEST_CONNECTIONS = SLOTS.documents.running + SLOTS.revocations.running + SLOTS.webhooks.running;

/** One workspace may fill this share of the queue. */
const WAITING_SHARE = 1 / 4;

/** What a request waits for before it is handled. */
export interface Admission {
  readonly pool: RequestPool;
  /** The most that it reads into memory, with what is made of it. It is reserved before anything is read. */
  readonly bytes: number;
}

declare module 'fastify' {
  interface FastifyRequest {
    /** Gives back the slot that the request has, before its response is sent. */
    releaseSlot: () => void;
  }
  interface FastifyContextConfig {
    /** What admits the request. `queries`: it takes a slot for each of its queries, in the query runner. Every route has one. */
    admission?: Admission | 'queries';
  }
}

/**
 * Admits requests that do more than queries: FIFO within a workspace, round-robin between workspaces, so that one workspace
 * cannot keep the others waiting. A request has its slot until its handler is done, however slowly its client reads.
 */
export class RequestSlots {
  readonly #slots: Readonly<Record<RequestPool, QuerySlots>>;
  readonly #timeoutMs: number;

  constructor(config: Pick<QueryConfig, 'QUERY_PENDING_MAX' | 'QUERY_TIMEOUT_MS'>, metrics: QueryMetrics) {
    const waiting = config.QUERY_PENDING_MAX;
    const waitingOfWorkspace = Math.ceil(waiting * WAITING_SHARE);
    const slotsOf = (pool: RequestPool) =>
      new QuerySlots({ ...SLOTS[pool], waiting, waitingOfWorkspace }, metrics, pool);
    this.#slots = {
      documents: slotsOf('documents'),
      revocations: slotsOf('revocations'),
      webhooks: slotsOf('webhooks'),
      forwarded: slotsOf('forwarded'),
    };
    this.#timeoutMs = config.QUERY_TIMEOUT_MS;
  }

  /** Has the routes that follow wait for their slots. @throws {Error} for a route that does not say what admits it */
  register(app: FastifyInstance): void {
    app.decorateRequest('releaseSlot');
    app.addHook('onRoute', ({ method, url, config }) => {
      if (config?.admission === undefined) throw new Error(`nothing admits ${String(method)} ${url}`);
    });
    app.addHook('preHandler', async (request, reply) => {
      const { admission = 'queries' } = request.routeOptions.config;
      request.releaseSlot = () => undefined;
      if (admission !== 'queries') await this.#admit(admission, request, reply);
      return reply.sent ? reply : undefined;
    });
    app.addHook('onSend', async (request) => request.releaseSlot?.());
  }

  /** Before the service stops: requests that wait are refused. */
  close(): void {
    for (const slots of Object.values(this.#slots)) slots.close();
  }

  /** @throws {Problem} `overloaded` */
  async #admit({ pool, bytes }: Admission, request: FastifyRequest, reply: FastifyReply): Promise<void> {
    const left = new AbortController();
    const leave = () => left.abort();
    reply.raw.once('close', leave);
    const { workspace } = request;
    try {
      if (reply.raw.closed) left.abort();
      request.releaseSlot = await this.#slots[pool].acquire({
        ...{ workspace, signal: left.signal, timeoutMs: this.#timeoutMs },
      });
    } catch (error) {
      // There is no one to send an error to.
      if (left.signal.aborted) return void reply.hijack();
      throw queryProblem(outcomeOf(error), error);
    } finally {
      reply.raw.off('close', leave);
    }
    // While it waited, it held nothing but itself.
    reserve(request.memory, bytes);
  }
}
