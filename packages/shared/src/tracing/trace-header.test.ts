import { expect, test } from 'vitest';
import { collectSpans } from './testing/collect-spans.ts';
import { sendOf, traceHeader } from './trace-header.ts';
import { tracer } from './tracer.ts';

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
