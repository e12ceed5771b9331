import { randomUUIDv7 } from 'node:crypto';
import { METHODS } from 'node:http';
import type { Socket } from 'node:net';
import Fastify, {
  type FastifyBaseLogger,
  type FastifyError,
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
  LogController,
} from 'fastify';
import { collectDefaultMetrics, Histogram, type Registry } from 'prom-client';
import type { Component } from '../lifecycle.ts';
import type { Logger } from '../log.ts';
import { Problem, type ProblemCode, problemBody } from './problem.ts';
import { parseQueryString } from './query-string.ts';
import { createRefusals, type Refusals } from './refusals.ts';

/** A request id from outside is kept when it is short and plain, and replaced otherwise. */
const SANE_REQUEST_ID = /^[A-Za-z0-9._:/+=-]{1,128}$/;

/** How long a request may take to arrive, in milliseconds. */
const REQUEST_TIMEOUT_MS = 60_000;

/** Every method that Node reads, but CONNECT, which is for proxies and never becomes a request. */
const ALL_METHODS = METHODS.filter((method) => method !== 'CONNECT');

/** Identifiers may be 512 characters of up to 4 bytes, each of which a URL writes as three characters. */
const PATH_PARAMETER_LENGTH_MAX = 512 * 4 * 3;

export interface HttpServerOptions {
  readonly logger: Logger;
  readonly registry: Registry;
  /** What keeps the service from doing its job now, each as a short phrase; nothing when it is ready. */
  readonly readiness: () => Promise<readonly string[]> | readonly string[];
  /** Bytes of a request's body. */
  readonly bodyLimit?: number;
}

/**
 * The HTTP server that all services share: problem+json errors, `X-Request-Id`, `/livez`, `/readyz` and `/metrics`.
 * Call {@link refuseOtherMethods} once the routes are declared.
 */
export function createHttpServer({ logger, registry, readiness, bodyLimit }: HttpServerOptions): FastifyInstance {
  let closing = false;
  const refusals = createRefusals(registry);
  const sendError = createErrorHandler(refusals);
  const app: FastifyInstance = Fastify({
    loggerInstance: logger as FastifyBaseLogger,
    logController: new LogController({ disableRequestLogging: true }),
    genReqId: (request) => requestId(request.headers['x-request-id']),
    forceCloseConnections: 'idle',
    // A client that announces a body and sends none must not hold the memory reserved for it.
    requestTimeout: REQUEST_TIMEOUT_MS,
    // What still comes on a connection that is in use is answered as always, and the connection closed after it.
    return503OnClosing: false,
    ...(bodyLimit !== undefined && { bodyLimit }),
    routerOptions: {
      ignoreTrailingSlash: true,
      maxParamLength: PATH_PARAMETER_LENGTH_MAX,
      // What the router's parser throws would end the process: parsing waits for the request's first hook.
      querystringParser: () => ({}),
    },
    frameworkErrors: (error, request, reply) => sendError(error, request, reply as FastifyReply),
    clientErrorHandler: (error, socket) => refuseMalformed(error, socket, refusals, logger),
  });

  collectDefaultMetrics({ register: registry });
  const duration = new Histogram({
    name: 'http_request_duration_seconds',
    help: 'Time from the request to the end of its answer, by route, method and status.',
    labelNames: ['route', 'method', 'status'],
    buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
    registers: [registry],
  });

  // Hooks of every request take a callback, since a promise for each costs more than what they do.
  app.addHook('onRequest', (request, reply, done) => {
    reply.header('x-request-id', request.id);
    // Before a body is read that nobody asked for.
    if (request.is404) throw new Problem('not_found', 'There is nothing here.');
    request.query = parseQueryString(queryOf(request.url));
    done();
  });
  app.addHook('onResponse', (request, reply, done) => {
    const route = request.routeOptions.url ?? 'unknown';
    duration.observe({ route, method: request.method, status: reply.statusCode }, reply.elapsedTime / 1_000);
    request.log.debug({ method: request.method, route, status: reply.statusCode, ms: reply.elapsedTime }, 'answered');
    done();
  });
  app.addHook('preClose', async () => {
    closing = true;
  });
  app.setErrorHandler<FastifyError | Problem>(sendError);

  app.get('/livez', async () => ({ status: 'ok' }));
  app.get('/readyz', async (_request, reply) => {
    const missing = closing ? ['the service is stopping'] : await readiness();
    reply.code(missing.length === 0 ? 200 : 503);
    return missing.length === 0 ? { status: 'ok' } : { status: 'unavailable', missing };
  });
  app.get('/metrics', async (_request, reply) => {
    reply.type(registry.contentType);
    return await registry.metrics();
  });
  return app;
}

/** Answers what Node cannot read as HTTP, and so reaches no route, before its connection is closed. */
function refuseMalformed(error: NodeJS.ErrnoException, socket: Socket, refusals: Refusals, logger: Logger): void {
  const late = error.code === 'ECONNRESET' || error.code === 'ERR_HTTP_REQUEST_TIMEOUT';
  if (socket.writable && !late) {
    const tooLarge = error.code === 'HPE_HEADER_OVERFLOW';
    const detail = tooLarge ? 'The address and the headers are too long.' : 'The request is not HTTP/1.1.';
    const id = randomUUIDv7();
    const problem = new Problem('invalid_request', detail);
    refusals.record(problem, error, logger);
    const body = JSON.stringify(problemBody(problem, id));
    socket.write(
      `HTTP/1.1 400 Bad Request\r\nContent-Type: application/problem+json; charset=utf-8\r\nContent-Length: ${Buffer.byteLength(body)}\r\nX-Request-Id: ${id}\r\nConnection: close\r\n\r\n${body}`,
    );
  }
  socket.destroy(error);
}

/** Answers `405` with `Allow` to the methods that a declared path does not have. Call it after the last route. */
export function refuseOtherMethods(app: FastifyInstance, paths: Readonly<Record<string, readonly string[]>>): void {
  for (const method of ALL_METHODS) if (!app.supportedMethods.includes(method)) app.addHttpMethod(method);
  const withHealth = { '/livez': ['GET'], '/readyz': ['GET'], '/metrics': ['GET'], ...paths };
  for (const [url, methods] of Object.entries(withHealth)) {
    const allowed: readonly string[] = methods.includes('GET') ? [...methods, 'HEAD'] : methods;
    app.route({
      url,
      method: ALL_METHODS.filter((method) => !allowed.includes(method)),
      // Before the body is looked at: what the body is does not matter here.
      onRequest: async () => {
        throw new Problem('method_not_allowed', 'This path does not have that method.', {
          headers: { allow: allowed.join(', ') },
        });
      },
      handler: async () => undefined,
    });
  }
}

/** The component of a service that listens. */
export function listening(app: FastifyInstance, host: string, port: number): Component {
  return {
    name: 'HTTP server',
    async start() {
      await app.listen({ host, port });
    },
    async stop() {
      await app.close();
    },
  };
}

function queryOf(url: string): string {
  const start = url.indexOf('?');
  return start < 0 ? '' : url.slice(start + 1);
}

function requestId(given: string | string[] | undefined): string {
  return typeof given === 'string' && SANE_REQUEST_ID.test(given) ? given : randomUUIDv7();
}

function createErrorHandler(refusals: Refusals) {
  return async (error: FastifyError | Problem, request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> => {
    const problem = toProblem(error);
    refusals.record(problem, error, request.log as Logger);
    reply.code(problem.status).headers(problem.headers).header('x-request-id', request.id);
    reply.type('application/problem+json; charset=utf-8');
    return await reply.send(JSON.stringify(problemBody(problem, request.id)));
  };
}

const FASTIFY_ERRORS: Readonly<Record<string, readonly [ProblemCode, string]>> = {
  FST_ERR_CTP_BODY_TOO_LARGE: ['body_too_large', 'The body is larger than this service accepts.'],
  FST_ERR_CTP_INVALID_MEDIA_TYPE: ['unsupported_media_type', 'The body must be application/json.'],
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: ['invalid_request', 'The body does not have the length that was announced.'],
  FST_ERR_BAD_URL: ['invalid_request', 'The path is malformed.'],
  FST_ERR_ASYNC_CONSTRAINT: ['invalid_request', 'The request is malformed.'],
  FST_ERR_MAX_PARAM_LENGTH: ['not_found', 'There is nothing here.'],
};

function toProblem(error: FastifyError | Problem): Problem {
  if (error instanceof Problem) return error;
  const known = FASTIFY_ERRORS[error.code];
  if (known) return new Problem(known[0], known[1], { cause: error });
  if (error.statusCode !== undefined && error.statusCode >= 400 && error.statusCode < 500) {
    return new Problem('invalid_request', 'The request is malformed.', { cause: error });
  }
  return new Problem('internal', 'Something went wrong inside the service.', { cause: error });
}
