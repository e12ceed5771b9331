import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { ask, metric, SLOW_FILTERS, storeMany } from '../testing/load.ts';
import { anEvent, type QueryService, startQuery } from '../testing/query.ts';

let query: QueryService;

const HEAVY_REQUESTS = 50;
const HEAVY = `/events?total=none&orderByField=event&${SLOW_FILTERS}`;
const NEWEST = '/events?limit=100';

beforeAll(async () => {
  query = await startQuery(inject('clickhouseUrl'), { QUERY_TIMEOUT_MS: '60000' });
  await query.app.listen({ host: '127.0.0.1', port: 0 });
  await storeMany(query, 'a', 400_000);
  await storeMany(query, 'b', 10_000);
});
afterAll(() => query.stop());

/** The median time of ten newest pages of workspace b, with their counts, one after the other; in milliseconds. */
async function newestPageMs(): Promise<number> {
  const times: number[] = [];
  for (let page = 0; page < 10; page += 1) {
    const startedAt = performance.now();
    const { status, body } = await query.get(NEWEST, 'b');
    times.push(performance.now() - startedAt);
    expect([status, body.results.length, body.total]).toEqual([200, 100, 10_000]);
  }
  return times.sort((one, other) => one - other)[5] as number;
}

test('the newest page of one workspace stays fast while another has fifty heavy queries under way', async () => {
  await newestPageMs();
  const aloneMs = await newestPageMs();
  const heavy = Array.from({ length: HEAVY_REQUESTS }, () => ask(query, HEAVY, 'a'));
  try {
    await expect.poll(() => metric(query, 'sluice_queries{state="waiting"}')).toBe(HEAVY_REQUESTS - 8);
    expect(await metric(query, 'sluice_queries{state="running"}')).toBe(8);
    const besidesMs = await newestPageMs();
    // Eight heavy queries share the processors with it. A page that waited for one of them would take seconds.
    expect(besidesMs).toBeLessThan(100 * Math.max(aloneMs, 20));
    expect(await metric(query, 'sluice_queries{state="waiting"}')).toBeGreaterThan(0);
  } finally {
    for (const request of heavy) request.destroy();
  }
});

test('with one query of a workspace at a time pages come with their counts, and lists of users with their properties', async () => {
  const narrow = await startQuery(inject('clickhouseUrl'), {
    QUERY_CONNECTIONS_MAX: '1',
    QUERY_CONCURRENCY_PER_WORKSPACE: '1',
    COUNT_TIMEOUT_MS: '60000',
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
    const startedAt = performance.now();
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, index) => narrow.get(index % 2 ? '/users?limit=150' : '/events?limit=10')),
    );
    for (const [index, { status, body }] of answers.entries()) {
      expect([status, body.results.length]).toEqual([200, index % 2 ? 150 : 10]);
      if (index % 2 === 0) expect(body.total).toBe(30);
    }
    expect(performance.now() - startedAt).toBeLessThan(20_000);
  } finally {
    await narrow.stop();
  }
});

test('one workspace fills its part of the queue, and the others still have theirs', async () => {
  const narrow = await startQuery(inject('clickhouseUrl'), {
    QUERY_CONNECTIONS_MAX: '1',
    QUERY_PENDING_MAX: '8',
    QUERY_TIMEOUT_MS: '60000',
  });
  await narrow.app.listen({ host: '127.0.0.1', port: 0 });
  await storeMany(narrow, 'a', 100_000);
  const heavy = Array.from({ length: 3 }, () => ask(narrow, HEAVY, 'a'));
  try {
    await expect.poll(() => metric(narrow, 'sluice_queries{state="waiting"}')).toBe(2);
    const refused = await narrow.app.inject({ url: '/events', headers: { authorization: 'Bearer a' } });
    expect([refused.statusCode, refused.json().code, refused.headers['retry-after']]).toEqual([503, 'overloaded', '2']);
    const other = narrow.get('/events?total=none', 'b');
    await expect.poll(() => metric(narrow, 'sluice_queries{state="waiting"}')).toBe(3);
    for (const request of heavy) request.destroy();
    expect((await other).status).toBe(200);
  } finally {
    for (const request of heavy) request.destroy();
    await narrow.stop();
  }
});

test('a query that waits as long as it may run is answered 503, and a count null', async () => {
  const narrow = await startQuery(inject('clickhouseUrl'), {
    QUERY_CONNECTIONS_MAX: '1',
    QUERY_TIMEOUT_MS: '1500',
    COUNT_TIMEOUT_MS: '100',
  });
  await narrow.app.listen({ host: '127.0.0.1', port: 0 });
  await storeMany(narrow, 'a', 400_000);
  const heavy = ask(narrow, HEAVY, 'a');
  try {
    await expect.poll(() => metric(narrow, 'sluice_queries{state="running"}'), { interval: 5 }).toBe(1);
    const [page, count] = await Promise.all(
      ['/events?total=none', '/events?limit=0'].map((url) =>
        narrow.app.inject({ url, headers: { authorization: 'Bearer b' } }),
      ),
    );
    expect([count?.statusCode, count?.json().total]).toEqual([200, null]);
    expect([page?.statusCode, page?.json().code, page?.headers['retry-after']]).toEqual([503, 'overloaded', '2']);
  } finally {
    heavy.destroy();
    await narrow.stop();
  }
});
