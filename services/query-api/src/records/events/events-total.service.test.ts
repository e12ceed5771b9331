import { once } from 'node:events';
import { type IncomingMessage, request as sendRequest } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createGunzip } from 'node:zlib';
import { eventually } from '@sluice/shared/testing/eventually';
import { afterAll, beforeAll, expect, inject, onTestFinished, test, vi } from 'vitest';
import type { ClickHouseReader, ReadRequest } from '../../store/clickhouse-reader.ts';
import {
  isSlow,
  metric,
  outOfTime,
  queriesRunning,
  SLOW_EVENTS,
  SLOW_FILTER,
  slowly,
  storeMany,
} from '../../testing/load.ts';
import { anEvent, type QueryService, startQuery } from '../../testing/query-service.ts';

let query: QueryService;

/** A page that is found at once, and a total that is counted until that ends. */
const SLOW_TOTAL = `/events?limit=3&${SLOW_FILTER}`;

beforeAll(async () => {
  query = await startQuery(inject('clickhouseUrl'), {}, (reader) => slowly(reader, isSlowCount));
  await query.app.listen({ host: '127.0.0.1', port: 0 });
  await storeMany(query, 'a', SLOW_EVENTS);
  await storeMany(query, 'b', 10_050);
  await query.store(
    'c',
    Array.from({ length: 7 }, (_, index) => anEvent({ timestampMs: Date.UTC(2026, 0, 1 + index) })),
  );
});
afterAll(() => query.stop());

function isSlowCount(request: ReadRequest): boolean {
  return isSlow(request) && request.queryId.includes('/events_count/');
}

async function open(path: string, headers: Record<string, string>): Promise<IncomingMessage> {
  const { port } = query.app.server.address() as AddressInfo;
  const url = `http://127.0.0.1:${port}${path}`;
  const sent = sendRequest(url, { agent: false, headers: { authorization: 'Bearer a', ...headers } }).end();
  const [response] = (await once(sent, 'response')) as [IncomingMessage];
  return response;
}

async function countingQuery(requestId: string) {
  const result = await query.clickHouse.query({
    query: `SELECT query_id, Settings['log_comment'] AS comment FROM system.processes
      WHERE startsWith(query_id, {prefix:String})`,
    query_params: { prefix: `query-api/events_count/${requestId}/` },
    format: 'JSONEachRow',
  });
  return await result.json<{ query_id: string; comment: string }>();
}

test.each(['identity', 'gzip'])(
  'the records arrive (%s) before the total is counted; when counting fails then, the total is unknown',
  async (encoding) => {
    const requestId = `total-${encoding}`;
    const response = await open(SLOW_TOTAL, { 'accept-encoding': encoding, 'x-request-id': requestId });
    expect(response.headers['content-encoding']).toBe(encoding === 'gzip' ? 'gzip' : undefined);
    const body = encoding === 'gzip' ? response.pipe(createGunzip()) : response;
    let text = '';
    body.setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk;
    });
    await eventually(() => text).toContain('"nextCursor":"');
    expect(text.match(/"uuid"/g)).toHaveLength(3);
    // The id of the request names the query in ClickHouse.
    await eventually(() => countingQuery(requestId)).toHaveLength(1);
    const [running] = await countingQuery(requestId);
    expect(running?.comment).toBe(requestId);
    expect(text).not.toContain('"total"');
    // It may end before the command does.
    const ended = once(body, 'end');
    await query.clickHouse.command({
      query: 'KILL QUERY WHERE query_id = {id:String} ASYNC',
      query_params: { id: running?.query_id },
    });
    await ended;
    expect(JSON.parse(text)).toMatchObject({ limit: 3, offset: 0, total: null });
  },
);

test('requests with equal ids run at the same time', async () => {
  const headers = { authorization: 'Bearer b', 'x-request-id': 'the-same' };
  const responses = await Promise.all(
    Array.from({ length: 8 }, () => query.app.inject({ url: '/events?limit=1&event=e', headers })),
  );
  expect(responses.map(({ statusCode }) => statusCode)).toEqual(Array(8).fill(200));
});

test('a client that disconnects while its total is counted ends the count', async () => {
  const response = await open(SLOW_TOTAL, { 'x-request-id': 'gone' });
  response.resume();
  await eventually(() => countingQuery('gone')).toHaveLength(1);
  response.destroy();
  await eventually(() => queriesRunning(query)).toBe(0);
});

test('a page that is not full is its own total, and nothing is counted', async () => {
  const counts = () => metric(query, 'sluice_query_duration_seconds_count{kind="events_count",outcome="ok"}');
  const before = await counts();
  for (const [path, total] of [
    ['/events', 7],
    ['/events?limit=7', 7],
    ['/events?limit=3&offset=5', 7],
    ['/events?event=none', 0],
    ['/events?total=none', null],
  ] as const) {
    expect([path, (await query.get(path, 'c')).body.total]).toEqual([path, total]);
  }
  expect(await counts()).toBe(before);
  const first = await query.get('/events?limit=6', 'c');
  for (const path of [
    '/events?limit=0',
    '/events?limit=6',
    '/events?offset=8',
    `/events?cursor=${first.body.nextCursor}`,
  ]) {
    expect([path, (await query.get(path, 'c')).body.total]).toEqual([path, 7]);
  }
  expect(await counts()).toBe(before + 5);
});

test('a capped total is exact up to ten thousand, and says when there are more', async () => {
  for (const [path, total, totalIsLowerBound] of [
    ['/events?limit=1&total=capped', 10_000, true],
    ['/events?limit=0&total=capped', 10_000, true],
    ['/events?limit=1&total=capped&userId[ne]=7', 10_000, true],
    ['/events?limit=1&total=capped&userId=7', 11, false],
    ['/events?total=capped&userId=nobody', 0, false],
  ] as const) {
    expect([path, (await query.get(path, 'b')).body]).toMatchObject([path, { total, totalIsLowerBound }]);
  }
  expect((await query.get('/events?limit=1', 'b')).body).not.toHaveProperty('totalIsLowerBound');
  expect((await query.get('/events?limit=0', 'b')).body.total).toBe(10_050);
});

test('a list whose count took too long is not counted again for a while, unless its time range is narrower', async () => {
  let isTimeShort = true;
  const wrap = (reader: ClickHouseReader) => outOfTime(reader, (request) => isTimeShort && isSlowCount(request));
  const hurried = await startQuery(inject('clickhouseUrl'), {}, wrap);
  onTestFinished(() => hurried.stop());
  await storeMany(hurried, 'a', 3_000);
  const slowCounts = () =>
    metric(hurried, 'sluice_query_duration_seconds_count{kind="events_count",outcome="too_expensive"}');
  const total = async (parameters: string) => (await hurried.get(`/events?limit=1&${parameters}`)).body.total;

  // No time passes.
  const now = performance.now();
  const clock = vi.spyOn(performance, 'now').mockReturnValue(now);
  onTestFinished(() => clock.mockRestore());
  expect(await total(`${SLOW_FILTER}&startDate=2026-03-01`)).toBeNull();
  expect(await slowCounts()).toBe(1);
  // "The last months" are others a minute later.
  const moved = 'startDate=2026-03-01T00:01:00Z';
  for (const range of ['startDate=2026-03-01', 'startDate=2026-02-28&orderByDirection=ASC', 'offset=1', moved])
    expect([range, await total(`${SLOW_FILTER}&${range}`)]).toEqual([range, null]);
  expect(await slowCounts()).toBe(1);

  isTimeShort = false;
  expect(await total(`${SLOW_FILTER}&startDate=2026-03-01T00:00:01Z&endDate=2026-03-01T00:00:05Z`)).toBe(5);
  expect(await total('userId=7')).toBe(3);
  expect(await total('')).toBe(3_000);
  expect(await total(`${SLOW_FILTER}&startDate=2026-03-01`)).toBeNull();
  isTimeShort = true;

  clock.mockReturnValue(now + 61_000);
  expect(await total(SLOW_FILTER)).toBeNull();
  expect(await slowCounts()).toBe(2);
});
