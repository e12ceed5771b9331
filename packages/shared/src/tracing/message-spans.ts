import {
  type Context,
  isSpanContextValid,
  type Link,
  propagation,
  ROOT_CONTEXT,
  type Span,
  type SpanContext,
  TraceFlags,
  trace,
} from '@opentelemetry/api';

// Spans of what is done for many others at once, and the header by which a message of Kafka names the span of its send.

/**
 * Returns how the span of work begins that serves many others at once, as a send does for requests: it links to each of
 * them that is recorded, and continues the trace of the first. So with a sampler that follows the parent it is recorded
 * exactly if one of the others is, and each trace of a request leads to the row.
 */
export function sharedWork(served: readonly Link[]): { readonly parent: Context; readonly links: Link[] } {
  const valid = served.filter(({ context }) => isSpanContextValid(context));
  const links = valid.filter(({ context }) => isSampled(context));
  const first = links[0] ?? valid[0];
  return { parent: first ? trace.setSpanContext(ROOT_CONTEXT, first.context) : ROOT_CONTEXT, links };
}

function isSampled({ traceFlags }: SpanContext): boolean {
  return (traceFlags & TraceFlags.SAMPLED) !== 0;
}

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
