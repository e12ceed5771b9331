import { eventually } from '@sluice/shared/testing/eventually';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { stopTimers } from '../testing/gate.ts';
import { metric, openRequest, SLOW_EVENTS, SLOW_FILTER, slowly, storeMany } from '../testing/load.ts';
import { anEvent, type QueryService, startQuery } from '../testing/query-service.ts';

let query: QueryService;

const HEAVY_REQUESTS = 50;
const HEAVY = `/events?total=none&orderByField=event&${SLOW_FILTER}`;
const WAITING = 'sluice_queries{pool="pages",state="waiting"}';
const RUNNING = 'sluice_queries{pool="pages",state="running"}';

beforeAll(async () => {
  query = await startQuery(inject('clickhouseUrl'), { QUERY_TIMEOUT_MS: '600000', COUNT_TIMEOUT_MS: '600000' }, slowly);
  await query.app.listen({ host: '127.0.0.1', port: 0 });
  await storeMany(query, 'a', SLOW_EVENTS);
  await storeMany(query, 'b', 10_000);
});
afterAll(() => query.stop());

/** How many queries of a kind have ended with a result. */
function succeeded(service: QueryService, kind: string): Promise<number> {
  return metric(service, `sluice_query_duration_seconds_count{kind="${kind}",outcome="ok"}`);
}

test('the newest pages of one workspace do not wait for fifty heavy queries of another', async () => {
  // From now on the service knows how the events of b lie in time, and needs one query for a page.
  await query.get('/events?limit=100&total=none', 'b');
  const heavy = Array.from({ length: HEAVY_REQUESTS }, () => openRequest(query, HEAVY, 'a'));
  try {
    await eventually(() => metric(query, WAITING)).toBe(HEAVY_REQUESTS - 8);
    expect(await metric(query, RUNNING)).toBe(8);
    const before = await succeeded(query, 'events_page');
    for (let page = 0; page < 5; page += 1) {
      const { status, body } = await query.get('/events?limit=100', 'b');
      expect([status, body.results.length, body.total]).toEqual([200, 100, 10_000]);
    }
    // Every page of b came before a page of a: heavy queries ran and waited all the while, and none has ended.
    expect(await succeeded(query, 'events_page')).toBe(before + 5);
    expect([await metric(query, RUNNING), await metric(query, WAITING)]).toEqual([8, HEAVY_REQUESTS - 8]);
  } finally {
    for (const request of heavy) request.destroy();
  }
});

test('with one query slot, pages still come with their counts, and lists of users with their properties', async () => {
  const narrow = await startQuery(inject('clickhouseUrl'), {
    QUERY_CONNECTIONS_MAX: '1',
    QUERY_CONCURRENCY_PER_WORKSPACE: '1',
  });
  try {
    await narrow.store(
      'a',
      Array.from({ length: 30 }, () => anEvent()),
    );
    // More identifiers than one query for their properties may name.
    const ids = Array.from({ length: 200 }, (_, index) => `${index}`.padEnd(512, 'x'));
    await narrow.insert(
      'entities',
      ids.map((id) => ({ workspace_id: 'a', kind: 'user', id, first_seen_at: 1e12, last_seen_at: 1e12, version: 5 })),
    );
    // Two requests that wait for each other's slots would end with their time, as 503 and as a total of null.
    const responses = await Promise.all(
      Array.from({ length: 20 }, (_, index) => narrow.get(index % 2 ? '/users?limit=150' : '/events?limit=10')),
    );
    const found = responses.map(({ status, body }) => [status, body.results?.length, body.total]);
    expect(found).toEqual(found.map((_, index) => (index % 2 ? [200, 150, undefined] : [200, 10, 30])));
  } finally {
    await narrow.stop();
  }
});

test('one workspace fills its share of the queue, and the others still have theirs', async () => {
  const env = { QUERY_CONNECTIONS_MAX: '1', QUERY_PENDING_MAX: '8', QUERY_TIMEOUT_MS: '600000' };
  const narrow = await startQuery(inject('clickhouseUrl'), env, slowly);
  await narrow.app.listen({ host: '127.0.0.1', port: 0 });
  await storeMany(narrow, 'a', SLOW_EVENTS);
  const heavy = Array.from({ length: 3 }, () => openRequest(narrow, HEAVY, 'a'));
  try {
    await eventually(() => metric(narrow, WAITING)).toBe(2);
    const refused = await narrow.app.inject({ url: '/events', headers: { authorization: 'Bearer a' } });
    expect([refused.statusCode, refused.json().code, refused.headers['retry-after']]).toEqual([503, 'overloaded', '2']);
    const other = narrow.get('/events?total=none', 'b');
    await eventually(() => metric(narrow, WAITING)).toBe(3);
    for (const request of heavy) request.destroy();
    expect((await other).status).toBe(200);
  } finally {
    for (const request of heavy) request.destroy();
    await narrow.stop();
  }
});

test.each([
  {
    name: 'a page that waits as long as it may run gets 503',
    times: { QUERY_TIMEOUT_MS: '60000', COUNT_TIMEOUT_MS: '600000' },
    // A slow count may run on while the page gives up.
    slow: `/events?limit=0&${SLOW_FILTER}`,
    url: '/events?total=none',
    expected: { status: 503, body: { code: 'overloaded' }, retryAfter: '2' },
    later: { results: [] },
  },
  {
    name: 'a count that waits as long as it may run is null, and is counted when it is requested again',
    // A list that is too slow to count is not counted again for a minute.
    times: { QUERY_TIMEOUT_MS: '600000', COUNT_TIMEOUT_MS: '60000' },
    slow: HEAVY,
    url: '/events?limit=0',
    expected: { status: 200, body: { total: null }, retryAfter: undefined },
    later: { total: 0 },
  },
])('$name', async ({ times, slow, url, expected, later }) => {
  const narrow = await startQuery(inject('clickhouseUrl'), { ...times, QUERY_CONNECTIONS_MAX: '1' }, slowly);
  await narrow.app.listen({ host: '127.0.0.1', port: 0 });
  await storeMany(narrow, 'a', SLOW_EVENTS);
  const holder = openRequest(narrow, slow, 'a');
  try {
    await eventually(() => metric(narrow, RUNNING), { interval: 5 }).toBe(1);
    const pass = stopTimers();
    const waiting = narrow.app.inject({ url, headers: { authorization: 'Bearer b' } });
    await eventually(() => metric(narrow, WAITING)).toBe(1);
    pass(60_000);
    const { statusCode, headers, body } = await waiting;
    expect([statusCode, JSON.parse(body)]).toEqual([expected.status, expect.objectContaining(expected.body)]);
    expect(headers['retry-after']).toBe(expected.retryAfter);
    expect(await metric(narrow, 'sluice_query_wait_seconds_count{pool="pages",outcome="timed_out"}')).toBe(1);
    holder.destroy();
    await eventually(async () => (await narrow.get(url, 'b')).body).toMatchObject(later);
  } finally {
    holder.destroy();
    await narrow.stop();
  }
});
