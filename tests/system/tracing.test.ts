import { randomBytes } from 'node:crypto';
import { until } from '@sluice/shared/testing/until';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { readClickHouse } from '../kit/clickhouse.ts';
import { ownClickHouse } from '../kit/engines.ts';
import { type OtlpReceiver, type ReceivedSpan, startOtlpReceiver } from '../kit/otlp-receiver.ts';
import { type Pipeline, startPipeline } from '../kit/pipeline.ts';
import type { EventPage } from '../kit/records.ts';

const SERVER = 2;
const CLIENT = 3;
const PRODUCER = 4;
const CONSUMER = 5;

/** What no span may hold. */
const SECRETS = ['ada-the-user', 'acme-the-group', 'pro-the-plan', 'signed-up-event', 'idempotent-key-1'];

/** Each other than its default, and than the others. */
const BUDGETS = {
  QUERY_TIMEOUT_MS: '120000',
  COUNT_TIMEOUT_MS: '2500',
  QUERY_MEMORY_BYTES_MAX: '700000001',
  QUERY_RESULT_BYTES_MAX: '300000002',
  QUERY_BYTES_READ_MAX: '40000000003',
  QUERY_ROWS_READ_MAX: '900000004',
  QUERY_THREADS_MAX: '3',
};

let receiver: OtlpReceiver;
let clickhouse: Awaited<ReturnType<typeof ownClickHouse>>;
let pipeline: Pipeline;

beforeAll(async () => {
  [receiver, clickhouse] = await Promise.all([startOtlpReceiver(), ownClickHouse({ queryLog: true })]);
  pipeline = await startPipeline({
    kafkaBrokers: inject('kafkaBrokers'),
    clickhouseUrl: clickhouse.url,
    name: 'tracing',
    // Only what continues a trace that the client records is recorded.
    env: { ...receiver.env, OTEL_TRACES_SAMPLER: 'parentbased_always_off' },
    envOf: { writer: { STATEMENT_TIMEOUT_MS: '4321' }, 'query-api': BUDGETS },
  });
});
afterAll(async () => {
  await pipeline?.stop();
  await clickhouse?.[Symbol.asyncDispose]();
  await receiver?.[Symbol.asyncDispose]();
});

/** A trace that a client has begun. */
function clientSpan({ isSampled }: { readonly isSampled: boolean }) {
  const [traceId, spanId] = [randomBytes(16).toString('hex'), randomBytes(8).toString('hex')];
  return { traceId, spanId, traceparent: `00-${traceId}-${spanId}-0${isSampled ? 1 : 0}` };
}

async function received(what: string, find: (span: ReceivedSpan) => boolean): Promise<ReceivedSpan> {
  return await until(`the span of ${what}`, async () => receiver.spans.find(find));
}

function linksTo(target: ReceivedSpan): (span: ReceivedSpan) => boolean {
  return ({ links }) => links.some(({ traceId, spanId }) => traceId === target.traceId && spanId === target.spanId);
}

/** Returns the statements of a query log. */
async function logged(queryId: unknown): Promise<readonly { readonly comment: string }[]> {
  await readClickHouse(clickhouse.url, 'SYSTEM FLUSH LOGS');
  const sql = `SELECT log_comment AS comment FROM system.query_log
    WHERE type = 'QueryFinish' AND query_id = {id:String} FORMAT JSONEachRow`;
  const text = await readClickHouse(clickhouse.url, sql, { parameters: { id: String(queryId) } });
  return text === '' ? [] : text.split('\n').map((line) => JSON.parse(line) as { comment: string });
}

async function submit(traceparent: string, event: string): Promise<void> {
  const { status } = await pipeline.submit(
    {
      foreignUserGroupId: 'acme-the-group',
      foreignUserId: 'ada-the-user',
      events: [{ event, properties: { plan: 'pro-the-plan' } }],
    },
    { headers: { traceparent, 'x-request-id': 'a-submission', 'idempotency-key': `idempotent-key-1-${event}` } },
  );
  expect(status).toBe(202);
}

test('spans lead from the request of an event to the statement that stores it', async () => {
  const client = clientSpan({ isSampled: true });
  await submit(client.traceparent, 'signed-up-event');
  const request = await received('the request', ({ traceId, kind }) => traceId === client.traceId && kind === SERVER);
  expect(request).toMatchObject({
    service: 'sluice-ingest-api',
    name: 'POST /v1/public/userGroups',
    parentSpanId: client.spanId,
    attributes: {
      'http.request.method': 'POST',
      'http.route': '/v1/public/userGroups',
      'http.response.status_code': 202,
      'http.response.header.x-request-id': ['a-submission'],
      'url.scheme': 'http',
    },
  });
  const send = await received('the send', (span) => span.name === 'send tracing.events' && linksTo(request)(span));
  expect(send).toMatchObject({
    kind: PRODUCER,
    attributes: {
      'messaging.system.name': 'kafka',
      'messaging.destination.name': 'tracing.events',
      'messaging.operation.name': 'send',
      'messaging.operation.type': 'send',
      'messaging.batch.message_count': 1,
    },
  });
  const process = await received('the batch', (span) => span.kind === CONSUMER && linksTo(send)(span));
  expect(process).toMatchObject({
    service: 'sluice-writer',
    name: expect.stringMatching(/^process (tracing\.entities, )?tracing\.events$/),
    attributes: {
      'messaging.system.name': 'kafka',
      'messaging.operation.name': 'process',
      'messaging.operation.type': 'process',
      'messaging.consumer.group.name': 'tracing-writer',
    },
  });
  expect(process.links.find(({ spanId }) => spanId === send.spanId)?.attributes).toEqual({
    'messaging.destination.name': 'tracing.events',
    'messaging.destination.partition.id': expect.stringMatching(/^\d$/),
    'kafka.offset': 0,
  });
  const statement = await received(
    'the statement',
    ({ name, parentSpanId }) => name === 'store-events' && parentSpanId === process.spanId,
  );
  expect(statement).toMatchObject({
    kind: CLIENT,
    attributes: {
      'db.system.name': 'clickhouse',
      'db.namespace': pipeline.database,
      'db.query.summary': 'store-events',
      'server.address': '127.0.0.1',
      'server.port': clickhouse.httpPort,
    },
  });
  expect(await logged(statement.attributes['clickhouse.request.query_id'])).toHaveLength(1);
  // The traces are one: a viewer shows the whole way without following links.
  expect([send, process, statement].map(({ traceId }) => traceId)).toEqual(Array(3).fill(client.traceId));
});

test('a query has a span, with the id that it has in the query log, and its request is the comment there', async () => {
  const client = clientSpan({ isSampled: true });
  const response = await fetch(`${pipeline.services['query-api'].url}/events?groupId=acme-the-group`, {
    headers: {
      authorization: `Bearer ${pipeline.key}`,
      traceparent: client.traceparent,
      'x-request-id': 'a-page',
    },
  });
  expect(response.status).toBe(200);
  await response.arrayBuffer();
  const request = await received('the request', ({ traceId, kind }) => traceId === client.traceId && kind === SERVER);
  expect(request).toMatchObject({ service: 'sluice-query-api', name: 'GET /events', parentSpanId: client.spanId });
  const query = await received(
    'the query',
    ({ name, parentSpanId }) => name === 'events_page' && parentSpanId === request.spanId,
  );
  expect(query).toMatchObject({
    kind: CLIENT,
    attributes: {
      'db.system.name': 'clickhouse',
      'db.namespace': pipeline.database,
      'db.query.summary': 'events_page',
      'server.address': '127.0.0.1',
    },
  });
  const id = query.attributes['clickhouse.request.query_id'];
  expect(id).toMatch(/^query-api\/events_page\/a-page\/[0-9a-f-]{36}$/);
  expect(await logged(id)).toEqual([{ comment: 'a-page' }]);
});

// The query log also has the settings of statements.
test('statements of query-api and of the writer may take what the variables say', async () => {
  const { url } = pipeline.services['query-api'];
  const settingsOf = async (kind: string, path: string) => {
    const id = `limits-of-${kind}`;
    const response = await fetch(`${url}${path}`, {
      headers: { authorization: `Bearer ${pipeline.key}`, 'x-request-id': id },
    });
    await response.arrayBuffer();
    expect(response.status).toBe(200);
    return await settingsInLog(`/${kind}/${id}/`);
  };
  const budget = {
    ...{ max_memory_usage: '700000001', max_result_bytes: '300000002', max_bytes_to_read: '40000000003' },
    ...{ max_rows_to_read: '900000004', max_threads: '3' },
  };
  const page = await settingsOf('events_page', '/events?limit=1');
  expect(page).toMatchObject(budget);
  expect(Number(page['max_execution_time'])).toBeGreaterThan(2.5);
  expect(Number(page['max_execution_time'])).toBeLessThanOrEqual(120);
  const count = await settingsOf('events_count', '/events?limit=0&properties.plan=pro');
  expect(count).toMatchObject(budget);
  expect(Number(count['max_execution_time'])).toBeLessThanOrEqual(2.5);
  expect(await settingsOf('series', '/events/series?startDate=2026-01-01')).toMatchObject(budget);
  // An export may take any time, and read and return everything: 0 is the default, which is not logged.
  const exported = await settingsOf('events_export', '/events/export?format=ndjson&startDate=2026-01-01');
  expect(exported).toMatchObject({ max_memory_usage: '700000001', max_threads: '3' });
  for (const name of ['max_execution_time', 'max_result_bytes', 'max_bytes_to_read', 'max_rows_to_read']) {
    expect(exported).not.toHaveProperty(name);
  }
  await submit(clientSpan({ isSampled: false }).traceparent, 'limited');
  expect(await settingsInLog('/store-events/')).toMatchObject({ max_execution_time: '4.321' });
});

/** Returns the settings of a statement whose id has a text. */
async function settingsInLog(text: string): Promise<Readonly<Record<string, string>>> {
  return await until(`a statement ${text} in the query log`, async () => {
    await readClickHouse(clickhouse.url, 'SYSTEM FLUSH LOGS');
    const sql = `SELECT toJSONString(Settings) FROM system.query_log
      WHERE type = 'QueryFinish' AND position(query_id, {text:String}) > 0 LIMIT 1 FORMAT TabSeparatedRaw`;
    const found = await readClickHouse(clickhouse.url, sql, { parameters: { text } });
    return found === '' ? undefined : (JSON.parse(found) as Record<string, string>);
  });
}

test('what a client does not record leaves no spans, and its events are stored', async () => {
  const [unrecorded, recorded] = [clientSpan({ isSampled: false }), clientSpan({ isSampled: true })];
  await submit(unrecorded.traceparent, 'unrecorded');
  const stored = async () => {
    const { body } = await pipeline.get<EventPage>('/events?event=unrecorded');
    return body.total === 1;
  };
  await until('the event to be stored', stored);
  await submit(recorded.traceparent, 'recorded');
  await received('the statement', ({ traceId, name }) => traceId === recorded.traceId && name === 'store-events');
  expect(receiver.spans.filter(({ traceId }) => traceId === unrecorded.traceId)).toEqual([]);
  // Neither do statements that no request needs.
  expect(receiver.spans.filter(({ kind, parentSpanId }) => kind === CLIENT && parentSpanId === undefined)).toEqual([]);
});

test('no span holds a property, an identifier, a key, or a part of a query', () => {
  const text = receiver.received.join('\n');
  for (const secret of [...SECRETS, pipeline.key]) expect(text).not.toContain(secret);
});
