import {
  type ClickHouseSpan,
  type ClickHouseSpanAttributes,
  ClickHouseSpanNames,
  type ClickHouseTracer,
} from '@clickhouse/client';
import { type Attributes, context, type Span, SpanKind, type SpanStatusCode, trace } from '@opentelemetry/api';
import { ATTRIBUTE, QUERY_ID, tracer } from '../tracing/tracer.ts';

/** An id of a query as the writer creates them: it ends with the name of the statement and a UUID. */
const NAMED = /\/([a-z-]+)\/[0-9a-f-]{36}$/;

/** The client's name of what follows a SELECT, until its rows have arrived. */
const UNTRACED: ReadonlySet<string> = new Set([ClickHouseSpanNames.query_stream, ClickHouseSpanNames.ping]);

const NO_SPAN: ClickHouseSpan = {
  setAttributes: () => undefined,
  setStatus: () => undefined,
  recordException: () => undefined,
  end: () => undefined,
};

/**
 * Gives each statement that @clickhouse/client sends a span, if it belongs to something that is traced. A statement that
 * a service repeats every second belongs to nothing.
 */
export const statementTracer: ClickHouseTracer = {
  startActiveSpan(operation, { attributes = {} }, send) {
    if (!trace.getActiveSpan() || UNTRACED.has(operation)) return send(NO_SPAN);
    const name = NAMED.exec(String(attributes[QUERY_ID]))?.[1] ?? operation;
    const options = { kind: SpanKind.CLIENT, attributes: { ...attributes, [ATTRIBUTE.querySummary]: name } };
    return send(new StatementSpan(tracer.startSpan(name, options, context.active())));
  },
};

/** A span without the messages of errors, which quote rows. */
class StatementSpan implements ClickHouseSpan {
  readonly #span: Span;

  constructor(span: Span) {
    this.#span = span;
  }

  /** The client's `db.response.status_code` is that of HTTP. */
  setAttributes({
    [ATTRIBUTE.databaseStatus]: _,
    'clickhouse.error.code': code,
    ...attributes
  }: ClickHouseSpanAttributes): void {
    const status = code === undefined ? {} : { [ATTRIBUTE.databaseStatus]: String(code) };
    this.#span.setAttributes({ ...attributes, ...status } as Attributes);
  }

  setStatus({ code }: { readonly code: number }): void {
    this.#span.setStatus({ code: code as SpanStatusCode });
  }

  recordException(): void {}

  end(): void {
    this.#span.end();
  }
}
