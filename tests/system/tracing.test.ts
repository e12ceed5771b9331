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
