import { afterAll, beforeAll, expect, inject, onTestFinished, test, vi } from 'vitest';
import { anEvent, aRegister, type QueryService, startQuery } from './testing/query-service.ts';

let query: QueryService;

beforeAll(async () => {
  query = await startQuery(inject('clickhouseUrl'), { QUERY_ANONYMOUS_WORKSPACE: 'b' });
  for (const workspace of ['a', 'b']) {
    const name = `of-${workspace}`;
    await query.store(workspace, [
      anEvent({ event: name, userId: name, groupId: name, properties: `{"of":"${workspace}"}` }),
      anEvent({ event: 'shared', userId: 'shared', groupId: 'shared', properties: `{"of":"${workspace}"}` }),
    ]);
    for (const kind of ['user', 'organization']) {
      for (const id of [name, 'shared']) {
        const entity = { workspace_id: workspace, kind, id };
        const seen = workspace === 'a' ? 1_000 : 2_000;
        await query.insert('entities', [
          { ...entity, first_seen_at: seen * 1e9, last_seen_at: seen * 1e9, version: 5 },
        ]);
        const register = aRegister(5, 'set', `"${workspace}"`);
        await query.insert('entity_properties', [{ ...entity, property: 'of', register }]);
      }
    }
  }
});
afterAll(() => query.stop());

const urls = [
  '/events',
  '/events?userId=shared',
  '/events?properties.of=a',
  '/events?properties.of=b&orderByField=event',
  '/users',
  '/users?properties.of=a',
  '/users/shared',
  '/users/of-a',
  '/organizations',
  '/organizations?properties.of=a',
  '/organizations/shared',
  '/organizations/of-a',
];

test.each(urls)('%s reads the workspace of the key alone', async (url) => {
  const [a, b] = [await query.get(url, 'a'), await query.get(url, 'b')];
  expect(a.text).not.toMatch(/of-b|"of":"b"/);
  expect(b.text).not.toMatch(/of-a|"of":"a"/);
  expect(a.text).not.toBe(b.text);
  expect((await query.get(url, 'c')).text).not.toContain('"of"');
});

test('the deletion of a user in one workspace hides nothing in another', async () => {
  const deletion = { workspace_id: 'c', user_id: 'shared', version: 9e15 };
  await query.insert('user_deletions', [deletion]);
  await query.insert('pending_deletions', [{ ...deletion, stored_at: 1 }]);
  expect((await query.get('/users/shared', 'a')).status).toBe(200);
  expect((await query.get('/events?userId=shared', 'a')).body.total).toBe(1);
});

test.each(['/events', '/users', '/organizations'])('a cursor of %s is refused in another workspace', async (path) => {
  const { body } = await query.get(`${path}?limit=1`, 'a');
  expect(body.nextCursor).not.toBeNull();
  expect((await query.get(`${path}?limit=1&cursor=${body.nextCursor}`, 'a')).status).toBe(200);
  expect((await query.get(`${path}?limit=1&cursor=${body.nextCursor}`, 'b')).status).toBe(400);
});

test.each(urls)('%s without a key reads the anonymous workspace', async (url) => {
  const response = await query.app.inject({ url });
  expect(response.body.replace(/"requestId":"[^"]*"/, '')).toBe(
    (await query.get(url, 'b')).text.replace(/"requestId":"[^"]*"/, ''),
  );
});

test.each(urls)('%s refuses a wrong key, even where none is needed', async (url) => {
  for (const authorization of ['Bearer nope', 'nope', 'Basic YTpi', 'Bearer ']) {
    const response = await query.app.inject({ url, headers: { authorization } });
    expect([response.statusCode, response.json().code]).toEqual([401, 'unauthorized']);
    expect(response.headers['www-authenticate']).toBe('Bearer');
  }
  const response = await query.app.inject({ url, headers: { authorization: 'Bearer ingest-only' } });
  expect([response.statusCode, response.json().code]).toEqual([403, 'missing_scope']);
});

test('a key over its rate gets 429 with Retry-After; another key, and a request without one, do not', async () => {
  const urls = ['/events?limit=0', '/users', '/organizations/shared'] as const;
  const get = (index: number) =>
    query.app.inject({ url: urls[index % 3] ?? '', headers: { authorization: 'Bearer limited' } });
  // A whole number: the sum of another one and a second may be less than a second later, by rounding.
  const now = Math.ceil(performance.now());
  const clock = vi.spyOn(performance, 'now').mockReturnValue(now);
  onTestFinished(() => clock.mockRestore());
  const responses = await Promise.all(Array.from({ length: 9 }, (_, index) => get(index)));
  const statuses = responses.map(({ statusCode }) => statusCode).sort();
  expect(statuses).toEqual([200, 200, ...Array(7).fill(429)]);
  for (const { headers } of responses.filter(({ statusCode }) => statusCode === 429)) {
    expect(headers['retry-after']).toBe('1');
  }
  expect((await query.get('/users', 'a')).status).toBe(200);
  expect((await query.app.inject({ url: '/users' })).statusCode).toBe(200);
  clock.mockReturnValue(now + 1_000);
  expect((await get(1)).statusCode).toBe(200);
});

test.each([...urls, '/events/names', '/events/export?startDate=2026-01-01&endDate=2026-02-01', '/pipeline'])(
  '%s may be neither kept by a browser nor taken for another type',
  async (url) => {
    for (const key of ['a', 'nope']) {
      const { headers } = await query.app.inject({ url, headers: { authorization: `Bearer ${key}` } });
      expect([headers['cache-control'], headers['x-content-type-options']]).toEqual(['no-store', 'nosniff']);
    }
  },
);

test('a page whose name resolves to this machine cannot read the workspace that needs no key', async () => {
  const local = await startQuery(inject('clickhouseUrl'), {
    QUERY_ANONYMOUS_WORKSPACE: 'b',
    ALLOWED_HOSTS: 'localhost, sluice.example',
  });
  try {
    const read = async (host: string) => (await local.app.inject({ url: '/events', headers: { host } })).statusCode;
    expect(await read('evil.example:4001')).toBe(421);
    for (const host of ['localhost:4001', '127.0.0.1:4001', 'sluice.example']) expect(await read(host)).toBe(200);
  } finally {
    await local.stop();
  }
});

test('without an anonymous workspace a key is needed', async () => {
  const closed = await startQuery(inject('clickhouseUrl'));
  try {
    expect((await closed.app.inject({ url: '/events' })).statusCode).toBe(401);
  } finally {
    await closed.stop();
  }
});

test.each([
  ['/events', 'GET, HEAD'],
  ['/users', 'GET, HEAD, DELETE'],
  ['/users/x', 'GET, HEAD'],
  ['/organizations', 'GET, HEAD'],
  ['/organizations/x', 'GET, HEAD'],
])('%s takes %s, and names them in the response to other methods', async (url, allow) => {
  const response = await query.app.inject({ method: 'POST', url });
  expect([response.statusCode, response.headers.allow]).toEqual([405, allow]);
  const head = await query.app.inject({ method: 'HEAD', url, headers: { authorization: 'bearer a' } });
  const get = await query.app.inject({ method: 'GET', url, headers: { authorization: 'bearer a' } });
  expect([head.statusCode, head.body]).toEqual([get.statusCode, '']);
  expect(head.headers['content-type']).toBe(get.headers['content-type']);
});
