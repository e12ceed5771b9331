import type { Reservation } from '@sluice/shared/http/memory-budget';
import type { QueryParameters } from '@sluice/shared/http/query-string';
import { untilDisconnected } from '@sluice/shared/http/response-end';
import type { Scope } from '@sluice/shared/keys/keys-file';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { QueryConfig } from '../config.ts';
import type { Describe } from '../http/http.ts';
import type { QueryContext } from './query.ts';
import { type QueryRunner, untilStoreAnswers } from './query-runner.ts';

/** What the routes of reads need. */
export interface ReadDependencies {
  readonly config: QueryConfig;
  readonly queryRunner: QueryRunner;
}

interface Parts {
  Querystring: QueryParameters;
  /** The parameters of a path with `:id`. */
  Params: { readonly id: string };
}

/** The request that the queries of a read belong to. */
export interface RequestContext extends QueryContext {
  readonly requestId: string;
  readonly signal: AbortSignal;
  readonly memory: Reservation;
}

type RequestOfQueries = Pick<FastifyRequest, 'workspace' | 'id' | 'store' | 'memory' | 'span'>;

/** Returns what the queries of a request belong to. Without a signal they go on when its client has gone. */
export function contextOf({ workspace, id, store, memory, span }: RequestOfQueries) {
  return { workspace, requestId: id, store, memory, span };
}

/** A `GET` that queries ClickHouse. */
export interface ReadRoute<Request> {
  readonly path: string;
  readonly describe: Describe;
  /**
   * Whether `respond` runs again when its ClickHouse server fails after the first row of a query, before anything is sent.
   * Default: false, for what collects all rows of each query, which then begins again by itself.
   */
  readonly repeats?: boolean;
  /** Whether the response may take any time. Default: its client is cut off. */
  readonly endless?: boolean;
  /** The scope that a key must have. Default: `query`. */
  readonly scope?: Scope;
  /**
   * Returns what is requested.
   *
   * @throws {Problem} `invalid_request`, naming every error
   */
  readonly parse: (request: FastifyRequest<Parts>) => Request;
  /** Sends the response. Its queries run in the context. */
  readonly respond: (request: Request, context: RequestContext, reply: FastifyReply) => Promise<FastifyReply>;
}

/** A {@link ReadRoute} whose request is in the query alone. */
export interface QueryRead<Request> extends Omit<ReadRoute<Request>, 'parse'> {
  readonly parse: (query: QueryParameters) => Request;
}

/** Registers a read as {@link registerRead} does. */
export function registerQueryRead<Request>(app: FastifyInstance, route: QueryRead<Request>): void {
  registerRead(app, { ...route, parse: ({ query }) => route.parse(query) });
}

/** Registers a read. Its queries end when the client disconnects, and when one of them has failed. */
export function registerRead<Request>(app: FastifyInstance, route: ReadRoute<Request>): void {
  const { path, describe, endless = false, scope = 'query', parse, ...read } = route;
  app.get<Parts>(path, { config: { describe, endless, scope, admission: 'queries' } }, async (request, reply) => {
    return await respondToRead(read, parse(request), request, reply);
  });
}

/** Responds to a read whose request is parsed. */
export async function respondToRead<Request>(
  { repeats = false, respond }: Pick<ReadRoute<Request>, 'repeats' | 'respond'>,
  parsed: Request,
  request: RequestOfQueries,
  reply: FastifyReply,
): Promise<FastifyReply> {
  return await whileConnected(reply, (signal) => {
    const run = () => respond(parsed, { ...contextOf(request), signal }, reply);
    return repeats ? untilStoreAnswers(request.store, run) : run();
  });
}

/** Handles a request as long as its client is connected. The signal aborts when it is not, or the handling has failed. */
export async function whileConnected(
  reply: FastifyReply,
  handle: (signal: AbortSignal) => Promise<FastifyReply>,
): Promise<FastifyReply> {
  return await untilDisconnected(reply, handle, () => {
    // There is no one to send the error to.
    reply.request.releaseSlot?.();
    return reply.hijack();
  });
}
