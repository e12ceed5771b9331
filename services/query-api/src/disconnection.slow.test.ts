import { randomBytes } from 'node:crypto';
import type { ClientRequest } from 'node:http';
import { eventually } from '@sluice/shared/testing/eventually';
import { afterAll, afterEach, beforeAll, expect, inject, test, vi } from 'vitest';
import type { ClickHouseReader } from './store/clickhouse-reader.ts';
import { Gate } from './testing/gate.ts';
import {
  isSlow,
  metric,
  openRequest,
  queriesRunning,
  readBeginning,
  responseTo,
  SLOW_EVENTS,
  SLOW_FILTER,
  slowly,
  storeMany,
} from './testing/load.ts';
import { anEvent, type QueryService, startQuery } from './testing/query-service.ts';

let query: QueryService;
const requests: ClientRequest[] = [];

const SLOW_PAGE = `/events?orderByField=event&${SLOW_FILTER}&total=none`;
const SLOW_COUNT = `/events?limit=0&${SLOW_FILTER}`;

/** Records of 40 MB, more than the buffers between ClickHouse and a client that does not read. */
const LONG_PAGE = '/events?total=none&limit=1000';

beforeAll(async () => {
  // Slots for two requests.
  query = await startListening({ QUERY_CONCURRENCY_PER_WORKSPACE: '2' });
  await storeMany(query, 'a', SLOW_EVENTS);
  await storeLong(query);
});
afterAll(() => query.stop());

afterEach(async () => {
  for (const request of requests.splice(0)) request.destroy();
  await expectIdle(query);
});

async function startListening(
  env: Readonly<Record<string, string>>,
  wrapReader: (reader: ClickHouseReader) => ClickHouseReader = slowly,
): Promise<QueryService> {
  const service = await startQuery(inject('clickhouseUrl'), env, wrapReader);
  await service.app.listen({ host: '127.0.0.1', port: 0 });
  return service;
}

async function storeLong(service: QueryService): Promise<void> {
  // Random, so that compressing it leaves much.
  const properties = () => JSON.stringify({ text: randomBytes(30_000).toString('base64') });
  await service.store(
    'b',
    Array.from({ length: 1_000 }, () => anEvent({ properties: properties() })),
  );
}

/** Sends a request that ends with its test. */
function start(service: QueryService, path: string, workspace?: string, encoding?: string): ClientRequest {
  const request = openRequest(service, path, workspace, encoding);
  requests.push(request);
  return request;
}

async function expectRunning(service: QueryService, count: number): Promise<void> {
  // The look-up of pending deletions, which needs no slot, has ended by then.
  await eventually(() => metric(service, 'sluice_queries{pool="pages",state="running"}'), { interval: 5 }).toBe(count);
  await eventually(() => queriesRunning(service), { interval: 5 }).toBe(count);
}

async function expectWaiting(service: QueryService, count: number): Promise<void> {
  await eventually(() => metric(service, 'sluice_queries{pool="pages",state="waiting"}')).toBe(count);
}

async function expectIdle(service: QueryService): Promise<void> {
  await eventually(() => queriesRunning(service), { interval: 20 }).toBe(0);
  await eventually(() => metric(service, 'sluice_queries{pool="pages",state="running"}')).toBe(0);
  await expectWaiting(service, 0);
}

function cancelled(kind: string): Promise<number> {
  return metric(query, `sluice_query_duration_seconds_count{kind="${kind}",outcome="cancelled"}`);
}

test.each([
  ['page', SLOW_PAGE, ['events_page']],
  ['count', SLOW_COUNT, ['events_count']],
])('a client that disconnects before the first byte of the response ends its %s', async (_, path, kinds) => {
  const before = await Promise.all(kinds.map(cancelled));
  const request = start(query, path);
  await expectRunning(query, kinds.length);
  request.destroy();
  await expectIdle(query);
  await eventually(() => Promise.all(kinds.map(cancelled))).toEqual(before.map((known) => known + 1));
});

test('a client that disconnects leaves the queue, and its queries never run', async () => {
  for (const path of [SLOW_PAGE, SLOW_COUNT]) start(query, path);
  await expectRunning(query, 2);
  const left = () => metric(query, 'sluice_query_wait_seconds_count{pool="pages",outcome="cancelled"}');
  const before = await left();
  const waiting = [SLOW_PAGE, SLOW_COUNT].map((path) => start(query, path));
  await expectWaiting(query, 2);
  for (const request of waiting) request.destroy();
  await expectWaiting(query, 0);
  expect(await queriesRunning(query)).toBe(2);
  await eventually(left).toBe(before + 2);
});

test.each(['identity', 'gzip', 'br', 'zstd'])(
  'a client that disconnects in the middle of a long response (%s) ends its page',
  async (encoding) => {
    const before = await cancelled('events_page');
    const request = start(query, LONG_PAGE, 'b', encoding);
    await readBeginning(request);
    await expectRunning(query, 1);
    request.destroy();
    await expectIdle(query);
    await eventually(() => cancelled('events_page')).toBe(before + 1);
  },
);

test.each(['identity', 'gzip'])(
  'a client that stops reading (%s) holds its slot until its time is up, and is then cut off',
  async (encoding) => {
    const narrow = await startListening({ QUERY_CONCURRENCY_PER_WORKSPACE: '1' });
    const timeIsUp = new AbortController();
    const clock = vi.spyOn(AbortSignal, 'timeout').mockReturnValue(timeIsUp.signal);
    try {
      await storeLong(narrow);
      const response = await readBeginning(start(narrow, LONG_PAGE, 'b', encoding));
      expect(await metric(narrow, 'sluice_queries{pool="pages",state="running"}')).toBe(1);
      clock.mockRestore();
      timeIsUp.abort(new DOMException('The time is up', 'TimeoutError'));
      await expectIdle(narrow);
      expect((await narrow.get('/events?limit=1&total=none', 'b')).status).toBe(200);
      response.resume();
      await new Promise((resolve) => response.once('close', resolve));
      expect(response.complete).toBe(false);
    } finally {
      clock.mockRestore();
      await narrow.stop();
    }
  },
);

test('a service that stops finishes queries that run, refuses those that wait, and leaves none running', async () => {
  const gate = new Gate(isSlow);
  const stopping = await startListening({ QUERY_CONCURRENCY_PER_WORKSPACE: '1' }, gate.wrap);
  try {
    const running = responseTo(start(stopping, SLOW_PAGE));
    await eventually(() => metric(stopping, 'sluice_queries{pool="pages",state="running"}')).toBe(1);
    const waiting = responseTo(start(stopping, SLOW_PAGE));
    await expectWaiting(stopping, 1);
    const closed = stopping.app.close();
    const refused = (await waiting).resume();
    expect([refused.statusCode, refused.headers['retry-after']]).toEqual([503, '2']);
    gate.open();
    expect((await running).resume().statusCode).toBe(200);
    await closed;
    // ClickHouse lists a query for a moment after its last row was received.
    await eventually(() => queriesRunning(stopping), { interval: 20 }).toBe(0);
  } finally {
    await stopping.stop();
  }
});
