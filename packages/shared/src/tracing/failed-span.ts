import { type Span, SpanStatusCode } from '@opentelemetry/api';
import { ATTRIBUTE } from './tracer.ts';

/**
 * Marks a span as failed. Only the error's type is recorded: a message may quote rows.
 *
 * @param type a name from a small set: of a class of errors, or of an error of Kafka
 */
export function markFailed(span: Span, type: string): void {
  span.setAttribute(ATTRIBUTE.errorType, type).setStatus({ code: SpanStatusCode.ERROR });
}
