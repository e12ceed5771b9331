import { createServer, type IncomingMessage } from 'node:http';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { z } from 'zod';
import { listening } from './http-server.ts';

/** A span as it was exported; its attributes by name. */
export interface ReceivedSpan {
  readonly service: string;
  readonly name: string;
  readonly kind: number;
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId: string | undefined;
  readonly attributes: Readonly<Record<string, unknown>>;
  readonly links: readonly Pick<ReceivedSpan, 'traceId' | 'spanId' | 'attributes'>[];
  /** 2 for an error. */
  readonly status: number;
}

/** A collector of spans, as far as a service can see. */
export interface OtlpReceiver extends AsyncDisposable {
  /** The environment of a service that exports its spans here. */
  readonly env: Readonly<Record<string, string>>;
  readonly spans: readonly ReceivedSpan[];
  /** All requests as they came. */
  readonly received: readonly string[];
}

/** OTLP's values of attributes: `{"stringValue":"a"}`, and lists of such values. */
const value: z.ZodType<unknown> = z.lazy(() =>
  z.union([
    z.object({ arrayValue: z.object({ values: z.array(value) }) }).transform(({ arrayValue }) => arrayValue.values),
    z.record(z.string(), z.union([z.string(), z.number(), z.boolean()])).transform((one) => Object.values(one)[0]),
  ]),
);

const attributes = z
  .array(z.object({ key: z.string(), value }))
  .default([])
  .transform((list) => Object.fromEntries(list.map((one) => [one.key, one.value])));

const exportRequest = z.object({
  resourceSpans: z.array(
    z.object({
      resource: z.object({ attributes }),
      scopeSpans: z.array(
        z.object({
          spans: z.array(
            z.object({
              traceId: z.string(),
              spanId: z.string(),
              parentSpanId: z.string().optional(),
              name: z.string(),
              kind: z.number(),
              attributes,
              links: z.array(z.object({ traceId: z.string(), spanId: z.string(), attributes })).default([]),
              status: z.object({ code: z.number().default(0) }),
            }),
          ),
        }),
      ),
    }),
  ),
});

/** How a receiver responds: `refusing` is 401, with the headers of the request. */
export type Manner = 'accepting' | 'refusing' | 'silent';

export async function startOtlpReceiver(manner: Manner = 'accepting'): Promise<OtlpReceiver> {
  const spans: ReceivedSpan[] = [];
  const received: string[] = [];
  const server = createServer(async (request, response) => {
    const body = await bodyOf(request);
    received.push(body);
    spans.push(...spansIn(body));
    if (manner === 'refusing') response.writeHead(401).end(JSON.stringify(request.headers));
    if (manner === 'accepting') response.setHeader('content-type', 'application/json').end('{}');
  });
  const { url, ...listener } = await listening(server);
  return { ...listener, env: { ...TRACING, OTEL_EXPORTER_OTLP_ENDPOINT: url }, spans, received };
}

/** Switches tracing on, as docs/operate/tracing.md says. */
const TRACING = {
  NODE_OPTIONS: `--import=${fileURLToPath(new URL('../../packages/shared/src/tracing/register.mjs', import.meta.url))}`,
  OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json',
  OTEL_BSP_SCHEDULE_DELAY: '100',
};

async function bodyOf(request: IncomingMessage): Promise<string> {
  return `${request.url}\n${await text(request)}`;
}

function spansIn(request: string): ReceivedSpan[] {
  const { resourceSpans } = exportRequest.parse(JSON.parse(request.slice(request.indexOf('\n'))));
  return resourceSpans.flatMap(({ resource, scopeSpans }) =>
    scopeSpans.flatMap((scope) =>
      scope.spans.map(({ parentSpanId, status, ...span }) => ({
        ...span,
        service: String(resource.attributes['service.name']),
        parentSpanId: parentSpanId || undefined,
        status: status.code,
      })),
    ),
  );
}
