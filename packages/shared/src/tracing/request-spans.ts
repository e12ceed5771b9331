import { isSpanContextValid, propagation, ROOT_CONTEXT, type Span, SpanKind } from '@opentelemetry/api';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { markFailed } from './failed-span.ts';
import { ATTRIBUTE, tracer, tracingSdk } from './tracer.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** `undefined` while nothing is traced. */
    span: Span | undefined;
  }
}

/** What is requested every few seconds, and is of no request of a client. */
const UNTRACED: ReadonlySet<string | undefined> = new Set(['/livez', '/readyz', '/metrics']);

/** Other methods are `_OTHER`: their names come from outside. */
const METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'OPTIONS', 'PATCH']);

/**
 * Gives each request a span of kind `server`, from its headers to the end of its response. It continues the trace that
 * the client names in `traceparent`.
 *
 * Paths and queries are in no span, only routes: they hold identifiers and properties.
 */
export function traceRequests(app: FastifyInstance): void {
  app.decorateRequest('span', undefined);
  // The SDK starts before the service, if at all.
  if (!tracingSdk()) return;
  app.addHook('onRequest', (request, reply, done) => {
    const span = UNTRACED.has(request.routeOptions.url) ? undefined : startSpan(request);
    if (span) {
      request.span = span;
      // After the response, and when the client has left before its end.
      reply.raw.once('close', () => endSpan(span, reply));
    }
    done();
  });
}

function startSpan(request: FastifyRequest): Span | undefined {
  const { headers, method: given, routeOptions, protocol, id } = request;
  const method = METHODS.has(given) ? given : '_OTHER';
  const name = method === '_OTHER' ? 'HTTP' : method;
  const { url: route } = routeOptions;
  const span = tracer.startSpan(
    route === undefined ? name : `${name} ${route}`,
    {
      kind: SpanKind.SERVER,
      attributes: {
        [ATTRIBUTE.method]: method,
        [ATTRIBUTE.scheme]: protocol,
        [ATTRIBUTE.requestId]: [id],
        ...(route !== undefined && { [ATTRIBUTE.route]: route }),
      },
    },
    propagation.extract(ROOT_CONTEXT, headers),
  );
  return isSpanContextValid(span.spanContext()) ? span : undefined;
}

function endSpan(span: Span, { raw }: FastifyReply): void {
  if (raw.headersSent) span.setAttribute(ATTRIBUTE.status, raw.statusCode);
  if (raw.statusCode >= 500) markFailed(span, String(raw.statusCode));
  span.end();
}
