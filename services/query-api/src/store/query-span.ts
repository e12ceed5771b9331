import { type Attributes, ROOT_CONTEXT, type Span, SpanKind, trace } from '@opentelemetry/api';
import type { ClickHouseConfig } from '@sluice/shared/config';
import { ATTRIBUTE, QUERY_ID } from '@sluice/shared/tracing/attributes';
import { markFailed } from '@sluice/shared/tracing/failed-span';
import { tracer } from '@sluice/shared/tracing/tracer';
import { ClickHouseException } from './read-failures.ts';

/** What the span of a query needs. */
export interface TracedQuery {
  readonly queryId: string;
  /** The span of its request, and the name of its own, a child of that. Default: it has none. */
  readonly traced?: { readonly request: Span; readonly name: string } | undefined;
}

/** Returns the attributes of every query. */
export function serverAttributes({ CLICKHOUSE_URL, CLICKHOUSE_DATABASE }: ClickHouseConfig): Attributes {
  const { hostname, port, protocol } = new URL(CLICKHOUSE_URL);
  return {
    [ATTRIBUTE.databaseSystem]: 'clickhouse',
    [ATTRIBUTE.databaseNamespace]: CLICKHOUSE_DATABASE,
    [ATTRIBUTE.serverAddress]: hostname,
    [ATTRIBUTE.serverPort]: Number(port) || (protocol === 'https:' ? 443 : 80),
  };
}

/** Gives a query a span from its start to its last row, if its request has one. */
export function withQuerySpan<Item>(
  query: TracedQuery,
  server: Attributes,
  items: AsyncGenerator<Item, void, undefined>,
): AsyncGenerator<Item, void, undefined> {
  const { queryId, traced } = query;
  if (!traced) return items;
  const attributes = { ...server, [ATTRIBUTE.querySummary]: traced.name, [QUERY_ID]: queryId };
  return inSpan(traced.request, traced.name, attributes, items);
}

async function* inSpan<Item>(
  request: Span,
  name: string,
  attributes: Attributes,
  items: AsyncGenerator<Item, void, undefined>,
): AsyncGenerator<Item, void, undefined> {
  const span = tracer.startSpan(name, { kind: SpanKind.CLIENT, attributes }, trace.setSpan(ROOT_CONTEXT, request));
  try {
    yield* items;
  } catch (error) {
    if (error instanceof ClickHouseException) span.setAttribute(ATTRIBUTE.databaseStatus, String(error.code));
    markFailed(span, (error as Error).name);
    throw error;
  } finally {
    span.end();
  }
}
