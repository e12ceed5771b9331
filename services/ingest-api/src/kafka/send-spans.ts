import { type Span, SpanKind } from '@opentelemetry/api';
import { ATTRIBUTE } from '@sluice/shared/tracing/attributes';
import { markFailed } from '@sluice/shared/tracing/failed-span';
import { sharedWork } from '@sluice/shared/tracing/shared-work';
import { traceHeader } from '@sluice/shared/tracing/trace-header';
import { tracer } from '@sluice/shared/tracing/tracer';
import type { Bundle, SendFailure } from './bundle.ts';

/**
 * The spans of one send, one for each topic. Each has links to the requests whose rows it holds, and its name travels in
 * a header of its messages, to the writer.
 */
export class SendSpans {
  readonly #spans: ReadonlyMap<string, Span>;

  constructor(bundles: readonly Bundle[]) {
    const byTopic = Map.groupBy(bundles, ({ target }) => target.topic);
    this.#spans = new Map([...byTopic].map(([topic, ofTopic]) => [topic, startSpan(topic, ofTopic)]));
  }

  /** Returns the header of the messages for a topic; none while nothing is traced. */
  header(topic: string): Readonly<Record<string, string>> {
    const span = this.#spans.get(topic);
    return span ? traceHeader(span) : {};
  }

  countMessages(topic: string, count: number): void {
    this.#spans.get(topic)?.setAttribute(ATTRIBUTE.messageCount, count);
  }

  /** Ends the spans. One of a topic with rows that Kafka has not acknowledged has failed. */
  end(failures: readonly SendFailure[]): void {
    for (const [topic, span] of this.#spans) {
      const failure = failures.find(({ bundle }) => bundle.target.topic === topic);
      if (failure) markFailed(span, failure.type ?? 'no response');
      span.end();
    }
  }
}

function startSpan(topic: string, bundles: readonly Bundle[]): Span {
  const requests = new Set<Span>();
  for (const { items } of bundles) for (const { span } of items) if (span) requests.add(span);
  const { parent, links } = sharedWork([...requests].map((span) => ({ context: span.spanContext() })));
  const attributes = {
    [ATTRIBUTE.messagingSystem]: 'kafka',
    [ATTRIBUTE.destination]: topic,
    [ATTRIBUTE.operation]: 'send',
    [ATTRIBUTE.operationType]: 'send',
  };
  return tracer.startSpan(`send ${topic}`, { kind: SpanKind.PRODUCER, links, attributes }, parent);
}
