import { context, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api';
import { afterAll, expect, inject, test } from 'vitest';
import { collectSpans } from '../tracing/testing/collect-spans.ts';
import { tracer } from '../tracing/tracer.ts';
import { createClickHouse } from './client.ts';

const ended = collectSpans();
const client = createClickHouse(
  {
    CLICKHOUSE_URL: inject('clickhouseUrl'),
    CLICKHOUSE_DATABASE: 'default',
    CLICKHOUSE_USER: 'default',
    CLICKHOUSE_PASSWORD: '',
  },
  { application: 'statement-tracer', requestTimeoutMs: 60_000, connectionsMax: 1 },
);
afterAll(() => client.close());

test('a statement has a span with its name and its error, without what the error quotes', async () => {
  const batch = tracer.startSpan('batch');
  const query_id = `test/store-events/${crypto.randomUUID()}`;
  await context.with(trace.setSpan(context.active(), batch), async () => {
    await client.command({ query: 'SELECT 1', query_id });
    await expect(client.command({ query: "SELECT throwIf(1, 'a secret')" })).rejects.toThrow('a secret');
    await (await client.query({ query: "SELECT 'a secret'" })).json();
  });
  expect(ended.map(({ name, kind, parentSpanContext }) => [name, kind, parentSpanContext?.spanId])).toEqual(
    ['store-events', 'clickhouse.command', 'clickhouse.query'].map((name) => [
      name,
      SpanKind.CLIENT,
      batch.spanContext().spanId,
    ]),
  );
  const [stored, failed] = ended;
  expect(stored?.status).toEqual({ code: SpanStatusCode.UNSET });
  expect(stored?.attributes).toMatchObject({ 'db.system.name': 'clickhouse', 'clickhouse.request.query_id': query_id });
  expect(stored?.attributes).not.toHaveProperty('db.response.status_code');
  expect(failed?.status).toEqual({ code: SpanStatusCode.ERROR });
  expect(failed?.attributes).toMatchObject({ 'db.response.status_code': '395', 'error.type': 'ClickHouseError' });
  expect(ended.flatMap(({ events }) => events)).toEqual([]);
  expect(JSON.stringify(ended.map(({ attributes, status }) => [attributes, status]))).not.toContain('secret');
});

test('a statement that belongs to nothing has no span', async () => {
  const before = ended.length;
  await client.command({ query: 'SELECT 1' });
  expect(ended).toHaveLength(before);
});
