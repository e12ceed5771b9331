import { randomUUIDv7 } from 'node:crypto';
import { Server as HttpsServer } from 'node:https';
import { isIP, type Socket } from 'node:net';
import Fastify, {
  type FastifyBaseLogger,
  type FastifyError,
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
  LogController,
} from 'fastify';
import type { Registry } from 'prom-client';
import type { Logger } from '../base/log.ts';
import type { Component } from '../service/lifecycle.ts';
import type { TlsFiles } from '../tls/tls-files.ts';
import { traceRequests } from '../tracing/request-spans.ts';
import { HttpMetrics } from './metrics.ts';
import { collectMethods } from './other-methods.ts';
import { Problem, type ProblemCode, problemBody } from './problem.ts';
import { parseQueryString } from './query-string.ts';
import { dropRestOfBody } from './response-end.ts';

/** A request id from outside is kept when it is short and plain, and replaced otherwise. */
const SANE_REQUEST_ID = /^[A-Za-z0-9._:/+=-]{1,128}$/;

/** How long a request may take to arrive, in milliseconds. */
export const REQUEST_TIMEOUT_MS = 60_000;

/** How long a client may take for its part of a TLS handshake, in milliseconds: a stop waits for it. */
const HANDSHAKE_MS_MAX = 5_000;

/** How often a server that stops closes connections without a request, in milliseconds. */
const IDLE_CHECK_MS = 50;

/** An identifier has up to 512 characters of up to 4 bytes, and a URL writes each byte as three characters. */
const PATH_PARAMETER_LENGTH_MAX = 512 * 4 * 3;

/** Returns more members of the body of an error response. */
type ProblemMembers = (problem: Problem) => Readonly<Record<string, unknown>>;

export interface HttpServerOptions extends HealthOptions {
  readonly logger: Logger;
  /** The largest body of a request, in bytes. Default: Fastify's, 1 MiB. */
  readonly bodyLimit?: number;
  /** Addresses and networks of proxies whose `X-Forwarded-For` says where a request comes from. Default: none. */
  readonly trustedProxies?: readonly string[];
  /** The names that the service may be reached by, besides IP addresses. Default: any. */
  readonly allowedHosts?: readonly string[] | undefined;
  /** Members that the body of an error response has besides those of problem+json. Default: none. */
  readonly problemMembers?: ProblemMembers;
  /** The service's certificate and key. Default: none, and the server speaks HTTP without TLS. */
  readonly tls?: TlsFiles | undefined;
}

/**
 * No route has a schema for Fastify: zod validates, and responses are JSON.stringify's. Without these, Fastify loads ajv
 * and fast-json-stringify at each start, 110 modules.
 */
const NO_SCHEMA_COMPILERS = {
  buildValidator: () => refuseSchema,
  buildSerializer: () => refuseSchema,
};

/** Ends the start of a service that has a route with a schema. */
function refuseSchema(): never {
  throw new Error('routes have no schemas for Fastify: validate with zod');
}

/**
 * Creates the HTTP server that all services share: problem+json errors, `X-Request-Id`, `/livez`, `/readyz` and
 * `/metrics`. After the last route, call `refuseOtherMethods`.
 */
export function createHttpServer(options: HttpServerOptions): FastifyInstance {
  const { logger, bodyLimit, trustedProxies = [], tls, problemMembers = () => ({}) } = options;
  const metrics = new HttpMetrics(options.registry);
  const refusals = new Refusals(metrics);
  const sendError = createErrorHandler(refusals, problemMembers);
  const app: FastifyInstance = Fastify({
    loggerInstance: logger as FastifyBaseLogger,
    schemaController: { compilersFactory: NO_SCHEMA_COMPILERS },
    logController: new LogController({ disableRequestLogging: true }),
    // `requestLog` adds the request's id.
    childLoggerFactory: (parent) => parent,
    genReqId: (request) => requestId(request.headers['x-request-id']),
    forceCloseConnections: 'idle',
    // A client that announces a body and sends none must not hold memory for it.
    requestTimeout: REQUEST_TIMEOUT_MS,
    // While the server stops, a request on an open connection is served as usual, and the connection then closed.
    return503OnClosing: false,
    // With TLS too it is HTTP/1.1: the type of the server is the same for Fastify.
    ...(tls && ({ https: { ...tls.current(), handshakeTimeout: HANDSHAKE_MS_MAX } } as object)),
    ...(bodyLimit !== undefined && { bodyLimit }),
    ...(trustedProxies.length > 0 && { trustProxy: [...trustedProxies] }),
    routerOptions: {
      ignoreTrailingSlash: true,
      // A client whose host is written with a slash at its end asks for `//v1/batch`.
      ignoreDuplicateSlashes: true,
      maxParamLength: PATH_PARAMETER_LENGTH_MAX,
      // An error of the router's parser would end the process. The first hook of a request parses instead.
      querystringParser: () => ({}),
    },
    frameworkErrors: (error, request, reply) => sendError(error, request, reply as FastifyReply),
    clientErrorHandler: (error, socket) => refuseMalformed(error, socket, refusals, logger),
  });
  if (tls) renewCertificates(app, tls, logger);
  collectMethods(app);
  traceRequests(app);
  addHooks(app, options, metrics);
  app.setErrorHandler<FastifyError | Problem>(sendError);
  new Health(options).register(app);
  return app;
}

/** Has the server use the certificate as it is in its file for each new connection. */
function renewCertificates(app: FastifyInstance, tls: TlsFiles, logger: Logger): void {
  const server: unknown = app.server;
  if (!(server instanceof HttpsServer)) throw new Error('the server does not speak TLS');
  let inForce = tls.current();
  // Before the listener that begins the handshake.
  server.prependListener('connection', () => {
    const current = tls.current();
    if (current !== inForce) server.setSecureContext(current);
    inForce = current;
  });
  server.on('tlsClientError', ({ message }) => logger.debug({ reason: message }, 'a TLS handshake failed'));
}

function addHooks(app: FastifyInstance, { logger, allowedHosts }: HttpServerOptions, metrics: HttpMetrics): void {
  const requireAllowedHost = createHostCheck(allowedHosts);
  // The hooks take callbacks: a promise for each request would cost more than what they do.
  app.addHook('onRequest', (request, reply, done) => {
    reply.header('x-request-id', request.id);
    // What a response holds came from outside: a browser must not take it for anything but its type.
    reply.header('x-content-type-options', 'nosniff');
    requireAllowedHost(request.headers.host);
    // Before the body is read: it can be of any type and size.
    if (request.is404) throw new Problem('not_found', 'There is nothing here.');
    request.query = parseQueryString(queryOf(request.url));
    done();
  });
  app.addHook('onResponse', (request, reply, done) => {
    const route = request.routeOptions.url ?? 'unknown';
    const { method } = request;
    const { statusCode: status, elapsedTime: ms } = reply;
    metrics.observeRequest(route, method, status, ms / 1_000);
    if (logger.isLevelEnabled('debug')) requestLog(request).debug({ route, method, status, ms }, 'response sent');
    done();
  });
}

/** Responds to a request that Node cannot read as HTTP, and that therefore reaches no route; closes the connection. */
function refuseMalformed(error: NodeJS.ErrnoException, socket: Socket, refusals: Refusals, logger: Logger): void {
  const late = error.code === 'ECONNRESET' || error.code === 'ERR_HTTP_REQUEST_TIMEOUT';
  if (socket.writable && !late) {
    const tooLarge = error.code === 'HPE_HEADER_OVERFLOW';
    const detail = tooLarge ? 'The address and the headers are too long.' : 'The request is not HTTP/1.1.';
    const id = randomUUIDv7();
    const problem = new Problem('invalid_request', detail);
    refusals.record(problem, error, () => logger);
    const body = JSON.stringify(problemBody(problem, id));
    socket.write(
      `HTTP/1.1 400 Bad Request\r\nContent-Type: application/problem+json; charset=utf-8\r\nContent-Length: ${Buffer.byteLength(body)}\r\nX-Request-Id: ${id}\r\nConnection: close\r\n\r\n${body}`,
    );
  }
  socket.destroy(error);
}

/**
 * Returns the logger of a request, whose lines have the request's id. Create it only to log: to create one for each request
 * costs as much as checking the request.
 */
export function requestLog(request: FastifyRequest): Logger {
  return request.log.child({ reqId: request.id }) as Logger;
}

/** Returns the component that listens for requests. */
export function listening(app: FastifyInstance, host: string, port: number): Component {
  return {
    name: 'HTTP server',
    async start() {
      await app.listen({ host, port });
    },
    async stop() {
      // Node.js closes the connections that are idle when it stops to listen. Those that become idle later, after a
      // response that was under way, it would keep until the client closes them.
      const timer = setInterval(() => app.server.closeIdleConnections(), IDLE_CHECK_MS);
      await app.close().finally(() => clearInterval(timer));
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

function createErrorHandler(refusals: Refusals, members: ProblemMembers) {
  return async (error: FastifyError | Problem, request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> => {
    const problem = toProblem(error);
    refusals.record(problem, error, () => requestLog(request));
    reply.code(problem.status).headers(problem.headers).header('x-request-id', request.id);
    reply.type('application/problem+json; charset=utf-8');
    if (problem.code !== 'body_too_slow') {
      // Fastify sets it where a body is refused.
      reply.removeHeader('connection');
      dropRestOfBody(request, reply);
    }
    return await reply.send(JSON.stringify({ ...problemBody(problem, request.id), ...members(problem) }));
  };
}

const FASTIFY_ERRORS: Readonly<Record<string, readonly [ProblemCode, string]>> = {
  FST_ERR_CTP_BODY_TOO_LARGE: ['body_too_large', 'The body is larger than this service accepts.'],
  FST_ERR_CTP_INVALID_MEDIA_TYPE: ['unsupported_media_type', 'The body must be application/json.'],
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: ['invalid_request', 'The body does not have the length in Content-Length.'],
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
  return new Problem('internal', 'The service failed; its log has the cause under this request id.', { cause: error });
}

/** Checks the `Host` of a request. @throws {Problem} `host_not_allowed` */
type HostCheck = (host: string | undefined) => void;

/**
 * Returns a check of the `Host` header. A web page of any site can make its own name resolve to this machine and then
 * read what is served here without a key; the browser still sends that name.
 *
 * An IP address is always allowed: it was not resolved. So are requests without a host, which browsers do not send.
 *
 * @param names that the service may be reached by, without ports; `undefined`: any
 */
function createHostCheck(names: readonly string[] | undefined): HostCheck {
  if (names === undefined) return () => undefined;
  const allowed = new Set(names.map((name) => name.toLowerCase()));
  return (host) => {
    if (host === undefined || host === '') return;
    const name = nameOf(host);
    if (allowed.has(name) || isIP(name.replace(/^\[(.*)\]$/, '$1')) !== 0) return;
    const detail =
      'This service is not reached by the name in the header Host. Use its address, or let the operator add the name to ALLOWED_HOSTS.';
    throw new Problem('host_not_allowed', detail);
  };
}

/** Returns the name of a host in lower case, without its port and the dot of a complete name. */
function nameOf(host: string): string {
  return host.replace(/:\d*$/, '').replace(/\.$/, '').toLowerCase();
}

interface HealthOptions {
  readonly registry: Registry;
  /** Returns what keeps the service from doing its work, each as a short phrase; empty when it is ready. */
  readonly readiness: () => Promise<readonly string[]> | readonly string[];
  /** Returns what an operator should change though the service does its work, a sentence for each. Default none. */
  readonly warnings?: (() => readonly string[]) | undefined;
}

/** What tells how a service is: `GET /livez`, `/readyz` and `/metrics`. */
class Health {
  readonly #options: HealthOptions;
  #stopping = false;

  constructor(options: HealthOptions) {
    this.#options = options;
  }

  register(app: FastifyInstance): void {
    const { registry } = this.#options;
    app.addHook('preClose', async () => {
      this.#stopping = true;
    });
    app.get('/livez', async () => ({ status: 'ok' }));
    app.get('/readyz', async (_request, reply) => {
      const missing = await this.#missing();
      reply.code(missing.length === 0 ? 200 : 503);
      const found = this.#options.warnings?.() ?? [];
      const warnings = found.length > 0 ? { warnings: found } : {};
      return missing.length === 0 ? { status: 'ok', ...warnings } : { status: 'unavailable', missing, ...warnings };
    });
    app.get('/metrics', async (_request, reply) => {
      reply.type(registry.contentType);
      return await registry.metrics();
    });
  }

  async #missing(): Promise<readonly string[]> {
    return this.#stopping ? ['the service is stopping'] : await this.#options.readiness();
  }
}

/** The time in which a 503 of one code is logged once, in milliseconds. Under load there are thousands a second. */
const LOG_INTERVAL_MS = 5_000;

/** Counts the requests that are refused, and logs those for which the service is to blame. */
class Refusals {
  readonly #refusedRequests: HttpMetrics['refusedRequests'];
  /** `at` is on the clock of `performance`, which nobody sets. */
  readonly #logged = new Map<ProblemCode, { at: number; suppressed: number }>();

  constructor({ refusedRequests }: Pick<HttpMetrics, 'refusedRequests'>) {
    this.#refusedRequests = refusedRequests;
  }

  /** `log` returns the request's logger, `error` is what was thrown. */
  record(problem: Problem, error: Error, log: () => Logger): void {
    this.#refusedRequests.inc({ code: problem.code });
    if (problem.status === 503) this.#logUnavailable(problem, log);
    else if (problem.status >= 500) log().error({ err: error, code: problem.code }, 'request failed');
  }

  #logUnavailable({ code, message, cause }: Problem, log: () => Logger): void {
    const last = this.#logged.get(code);
    if (last && performance.now() - last.at < LOG_INTERVAL_MS) {
      last.suppressed += 1;
      return;
    }
    this.#logged.set(code, { at: performance.now(), suppressed: 0 });
    const reason = cause instanceof Error ? cause.message : message;
    log().warn({ code, reason, suppressed: last?.suppressed ?? 0 }, 'requests get 503');
  }
}
