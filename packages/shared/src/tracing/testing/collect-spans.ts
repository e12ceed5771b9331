import type { Attributes, HrTime, Link, SpanContext, SpanKind, SpanStatus } from '@opentelemetry/api';
import { NodeSDK } from '@opentelemetry/sdk-node';

/** What a test sees of a span that has ended. */
export interface EndedSpan {
  readonly name: string;
  readonly kind: SpanKind;
  readonly attributes: Attributes;
  readonly links: readonly Link[];
  readonly status: SpanStatus;
  readonly events: readonly { readonly time: HrTime; readonly attributes?: Attributes | undefined }[];
  readonly parentSpanContext?: SpanContext;
  spanContext(): SpanContext;
}

/** Starts the SDK in this process, and returns the spans that have ended, of which more may come. */
export function collectSpans(): readonly EndedSpan[] {
  const ended: EndedSpan[] = [];
  const collector = {
    onStart: () => undefined,
    onEnd: (span: EndedSpan) => ended.push(span),
    forceFlush: async () => undefined,
    shutdown: async () => undefined,
  };
  new NodeSDK({
    spanProcessors: [collector],
    metricReaders: [],
    logRecordProcessors: [],
    autoDetectResources: false,
  }).start();
  return ended;
}
