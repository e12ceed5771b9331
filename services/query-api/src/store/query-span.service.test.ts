import { randomUUID } from 'node:crypto';
import { SpanStatusCode } from '@opentelemetry/api';
import { PINNED_SETTINGS } from '@sluice/shared/clickhouse/settings';
import { collectSpans } from '@sluice/shared/tracing/testing/collect-spans';
import { tracer } from '@sluice/shared/tracing/tracer';
import { afterAll, expect, inject, test } from 'vitest';
import { HttpClickHouseReader } from './clickhouse-reader.ts';

const ended = collectSpans();
const request = tracer.startSpan('GET /events');
const reader = new HttpClickHouseReader(
  {
    CLICKHOUSE_URL: inject('clickhouseUrl'),
    CLICKHOUSE_DATABASE: 'default',
    CLICKHOUSE_USER: 'default',
    CLICKHOUSE_PASSWORD: '',
  },
  { connectionsMax: 1, settings: PINNED_SETTINGS },
);
afterAll(() => reader.close());

function read(sql: string) {
  const traced = { request, name: 'events_page' };
  const { signal } = new AbortController();
  return reader.read({ sql, params: {}, settings: {}, queryId: randomUUID(), traced, signal });
}

test('a query that fails has a span with the number of the error, without its message', async () => {
  const failing = Array.fromAsync(read("SELECT throwIf(number = 1, 'a secret') FROM numbers(2)"));
  await expect(failing).rejects.toThrow('a secret');
  const span = ended.at(-1);
  expect(span?.status).toEqual({ code: SpanStatusCode.ERROR });
  expect(span?.attributes).toMatchObject({ 'db.response.status_code': '395', 'error.type': 'ClickHouseException' });
  expect(JSON.stringify([span?.attributes, span?.events])).not.toContain('secret');
});

test('the span of a query ends when its reader stops early', async () => {
  const rows = read('SELECT number FROM numbers(10000000)');
  await rows.next();
  const before = ended.length;
  await rows.return();
  expect(ended.slice(before)).toMatchObject([{ name: 'events_page', status: { code: SpanStatusCode.UNSET } }]);
  expect(ended.at(-1)?.parentSpanContext?.spanId).toBe(request.spanContext().spanId);
});
