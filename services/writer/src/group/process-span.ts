import { context, type Link, type Span, SpanKind, trace } from '@opentelemetry/api';
import { ATTRIBUTE } from '@sluice/shared/tracing/attributes';
import { markFailed } from '@sluice/shared/tracing/failed-span';
import { sharedWork } from '@sluice/shared/tracing/shared-work';
import { sendOf, TRACE_HEADER } from '@sluice/shared/tracing/trace-header';
import { tracer } from '@sluice/shared/tracing/tracer';
import type { SourceMessage } from '../protocol/row-batch.ts';

/**
 * Stores a batch within a span that has links to the sends of its messages, and of which the statements of the batch are
 * children.
 */
export async function inProcessSpan(
  messages: readonly SourceMessage[],
  groupId: string,
  store: () => Promise<void>,
): Promise<void> {
  const span = startSpan(messages, groupId);
  try {
    await context.with(trace.setSpan(context.active(), span), store);
  } catch (error) {
    markFailed(span, (error as Error).name);
    throw error;
  } finally {
    span.end();
  }
}

function startSpan(messages: readonly SourceMessage[], groupId: string): Span {
  const topics = new Set(messages.map(({ topic }) => topic));
  const { parent, links } = sharedWork(linksOf(messages));
  const attributes = {
    [ATTRIBUTE.messagingSystem]: 'kafka',
    [ATTRIBUTE.operation]: 'process',
    [ATTRIBUTE.operationType]: 'process',
    [ATTRIBUTE.group]: groupId,
    [ATTRIBUTE.messageCount]: messages.length,
    // The conventions have it only where it holds for every message.
    ...(topics.size === 1 && { [ATTRIBUTE.destination]: messages[0]?.topic ?? '' }),
  };
  const name = `process ${[...topics].sort().join(', ')}`;
  return tracer.startSpan(name, { kind: SpanKind.CONSUMER, links, attributes }, parent);
}

/** Returns a link to each send. Its attributes are those of the first message that came with it. */
function linksOf(messages: readonly SourceMessage[]): Link[] {
  const firsts = new Map<string, SourceMessage>();
  for (const source of messages) {
    const header = source.message.headers?.[TRACE_HEADER];
    if (header !== undefined && !firsts.has(String(header))) firsts.set(String(header), source);
  }
  return [...firsts].flatMap(([header, { topic, partition, message }]) => {
    const send = sendOf(header);
    const attributes = {
      [ATTRIBUTE.destination]: topic,
      [ATTRIBUTE.partition]: String(partition),
      [ATTRIBUTE.offset]: Number(message.offset),
    };
    return send ? [{ context: send, attributes }] : [];
  });
}
