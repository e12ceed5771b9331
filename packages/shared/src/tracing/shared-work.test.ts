import { INVALID_SPAN_CONTEXT, ROOT_CONTEXT, type SpanContext, trace } from '@opentelemetry/api';
import { expect, test } from 'vitest';
import { sharedWork } from './shared-work.ts';

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
