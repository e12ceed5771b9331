import { INVALID_SPAN_CONTEXT, ROOT_CONTEXT, type SpanContext, trace } from '@opentelemetry/api';
import { expect, test } from 'vitest';
import { sendOf, sharedWork, traceHeader } from './message-spans.ts';
import { collectSpans } from './testing/collect-spans.ts';
import { tracer } from './tracer.ts';

function spanContext(digit: string, isSampled: boolean): SpanContext {
  return { traceId: digit.repeat(32), spanId: digit.repeat(16), traceFlags: isSampled ? 1 : 0 };
}

function workFor(...served: readonly SpanContext[]) {
  const { parent, links } = sharedWork(served.map((context) => ({ context })));
  return { parent: trace.getSpanContext(parent), links: links.map(({ context }) => context) };
}

const [unrecorded, first, second] = [spanContext('1', false), spanContext('2', true), spanContext('3', true)];

test('work links to all that are recorded, and continues the trace of the first', () => {
  expect(workFor(unrecorded, first, second)).toEqual({ parent: first, links: [first, second] });
});

test('work for nothing that is recorded is not recorded by a sampler that follows the parent', () => {
  expect(workFor(INVALID_SPAN_CONTEXT, unrecorded)).toEqual({ parent: unrecorded, links: [] });
});

test('work for nothing that is traced begins a trace', () => {
  expect(sharedWork([{ context: INVALID_SPAN_CONTEXT }])).toEqual({ parent: ROOT_CONTEXT, links: [] });
});

test('without the SDK a message gets no header, and one that it came with is ignored', () => {
  const span = tracer.startSpan('send');
  expect(traceHeader(span)).toEqual({});
  expect(sendOf(`00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`)).toBeUndefined();
});

test('the header names the span, and a malformed one names none', () => {
  collectSpans();
  const span = tracer.startSpan('send');
  const { traceparent = '', ...more } = traceHeader(span);
  expect(more).toEqual({});
  const { traceId, spanId, traceFlags } = span.spanContext();
  expect(sendOf(traceparent)).toMatchObject({ traceId, spanId, traceFlags });
  for (const malformed of ['', 'x', `00-${traceId}`, `00-${'0'.repeat(32)}-${spanId}-01`]) {
    expect(sendOf(malformed), malformed).toBeUndefined();
  }
});
