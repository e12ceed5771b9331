import { propagation, ROOT_CONTEXT, type Span, type SpanContext, trace } from '@opentelemetry/api';

/** The header of a Kafka message that names the span of its send, in the form of W3C Trace Context. */
export const TRACE_HEADER = 'traceparent';

/** Returns the header for the messages of a send; none without the SDK. */
export function traceHeader(send: Span): Readonly<Record<string, string>> {
  const carrier: Partial<Record<string, string>> = {};
  propagation.inject(trace.setSpan(ROOT_CONTEXT, send), carrier);
  // Other headers, such as tracestate, may be long and come from clients.
  const header = carrier[TRACE_HEADER];
  return header === undefined ? {} : { [TRACE_HEADER]: header };
}

/** Returns the span of the send that a message came with; `undefined` where it names none, and without the SDK. */
export function sendOf(header: string): SpanContext | undefined {
  return trace.getSpanContext(propagation.extract(ROOT_CONTEXT, { [TRACE_HEADER]: header }));
}
