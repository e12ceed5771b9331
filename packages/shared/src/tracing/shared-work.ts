import {
  type Context,
  isSpanContextValid,
  type Link,
  ROOT_CONTEXT,
  type SpanContext,
  TraceFlags,
  trace,
} from '@opentelemetry/api';

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
