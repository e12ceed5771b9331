import { randomUUID } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import { WEBHOOKS_ACCOUNT } from '@sluice/shared/clickhouse/testing/test-accounts';
import { createDocumentChecker } from '@sluice/shared/testing/openapi';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import {
  SEGMENT_CONDITIONS_MAX,
  SEGMENT_NAME_CHARACTERS_MAX,
  SEGMENTS_MAX,
  SEGMENTS_OF_REQUEST_MAX,
} from '../../http/limits.ts';
import {
  anEvent,
  aRegister,
  DELETIONS_FORGOTTEN_MS,
  type QueryService,
  startQuery,
} from '../../testing/query-service.ts';
import { send } from '../../testing/views.ts';

let query: QueryService;

beforeAll(async () => {
  query = await startQuery(inject('clickhouseUrl'), WEBHOOKS_ACCOUNT);
});
afterAll(() => query.stop());

const PAYING = { of: 'organizations', filters: { 'properties.plan': 'pro' } };
const DAY_MS = 86_400_000;

const put = (name: string, body: object, workspace = 'a') =>
  send(query, 'PUT', `/segments/${name}`, body, `admin-${workspace}`);
const remove = (name: string, workspace = 'a') =>
  send(query, 'DELETE', `/segments/${name}`, undefined, `admin-${workspace}`);

async function setPlan(workspace: string, kind: string, id: string, plan: string, version: number): Promise<void> {
  const register = aRegister(version, 'set', JSON.stringify(plan));
  await query.insert('entity_properties', [{ workspace_id: workspace, kind, id, property: 'plan', register }]);
  const seen = { first_seen_at: 1, last_seen_at: 1, version };
  await query.insert('entities', [{ workspace_id: workspace, kind, id, other_id: '', ...seen }]);
}

test('a segment is stored, listed, counted, changed and deleted, and the next read has what it is then', async () => {
  await setPlan('a', 'organization', 'acme', 'pro', 1);
  await setPlan('a', 'organization', 'bolt', 'free', 1);
  await query.store('a', [anEvent({ groupId: 'acme' }), anEvent({ groupId: 'bolt' }), anEvent()]);
  const total = async (filter: string) => (await query.get(`/events?limit=0&${filter}`)).body.total;
  const stored = await put('paying', PAYING);
  expect([stored.status, stored.body]).toMatchObject([200, { name: 'paying', ...PAYING, behaviour: [] }]);
  expect((await send(query, 'GET', '/segments')).body).toEqual({ segments: [stored.body] });
  expect((await send(query, 'GET', '/segments/paying')).body).toEqual({ ...stored.body, count: 1, complete: true });
  expect([await total('segment=paying'), await total('segment[ne]=paying')]).toEqual([1, 2]);
  const { body: page } = await query.get('/organizations?segment=paying,');
  expect(page.errors).toMatchObject([{ path: 'segment', message: 'must name segments of the workspace' }]);
  expect((await put('paying', { ...PAYING, filters: { 'properties.plan[exists]': 'true' } })).status).toBe(200);
  expect([await total('segment=paying'), await total('segment[ne]=paying')]).toEqual([2, 1]);
  expect((await send(query, 'GET', '/segments')).body).toMatchObject({ segments: [{ name: 'paying' }] });
  expect((await remove('paying')).status).toBe(204);
  expect((await remove('paying')).status).toBe(404);
  expect((await send(query, 'GET', '/segments/paying')).status).toBe(404);
  for (const method of ['PUT', 'DELETE'] as const) {
    const refused = await send(query, method, '/segments/paying', method === 'PUT' ? PAYING : undefined);
    expect([refused.status, refused.body.code]).toEqual([403, 'missing_scope']);
  }
  const gone = await query.get('/events?segment=paying&limit=x');
  expect([gone.status, gone.body.errors.map(({ path }) => path)]).toEqual([400, ['segment', 'limit']]);
  // The same name may be used again.
  await put('paying', PAYING);
  expect(await total('segment=paying')).toBe(1);
});

test.each<[object, readonly string[]]>([
  [{}, ['of']],
  [{ of: 'people' }, ['of']],
  [{ of: 'users' }, ['filters']],
  [
    { of: 'users', filters: { 'organization.properties.plan': 'pro', segment: 'a' } },
    ['filters.organization.properties.plan', 'filters.segment'],
  ],
  [
    { of: 'users', filters: { 'firstSeenAt[gte]': 'monday', lastSeenAt: '2026-03-01' } },
    ['filters.firstSeenAt[gte]', 'filters.lastSeenAt'],
  ],
  [
    { of: 'users', behaviour: [{ did: '', times: -1, days: 0, often: true }] },
    ['behaviour.0.did', 'behaviour.0.times', 'behaviour.0.days', 'behaviour.0.often'],
  ],
  [{ of: 'users', behaviour: Array.from({ length: SEGMENT_CONDITIONS_MAX + 1 }, () => ({ did: 'e' })) }, ['filters']],
])('%j is refused, and every fault is named', async (body, paths) => {
  const refused = await put('bad', body);
  expect([refused.status, refused.paths]).toEqual([400, paths]);
});

test('names have letters of ASCII, digits, - and _, and there are so many segments at most', async () => {
  for (const name of ['a.b', 'a%2Cb', 'a%20b', '%C3%BC', 'x'.repeat(SEGMENT_NAME_CHARACTERS_MAX + 1)]) {
    expect(await put(name, PAYING, 'b')).toMatchObject({ status: 400, paths: ['name'] });
  }
  const names = Array.from({ length: SEGMENTS_MAX - 1 }, (_, index) => `s${index}`);
  const rows = names.map((name) => ({
    ...{ kind: 'segment', workspace_id: 'b', id: randomUUID(), created_at: Date.now(), is_deleted: false },
    content: JSON.stringify({ name, ...PAYING, behaviour: [] }),
  }));
  await query.insert('console_documents', rows);
  expect((await put('x'.repeat(SEGMENT_NAME_CHARACTERS_MAX), PAYING, 'b')).status).toBe(200);
  expect(await put('more', PAYING, 'b')).toMatchObject({ status: 400, paths: ['segments'] });
  expect((await put(String(names[0]), PAYING, 'b')).status).toBe(200);
});

test('a request names so many segments at most', async () => {
  await put('paying', PAYING, 'c');
  const names = (count: number) => Array.from({ length: count }, () => 'paying').join();
  const asked = (count: number) => query.get(`/events?limit=1&segment[in]=${names(count)}`, 'c');
  expect((await asked(SEGMENTS_OF_REQUEST_MAX)).status).toBe(200);
  const refused = await asked(SEGMENTS_OF_REQUEST_MAX + 1);
  expect([refused.status, refused.body.errors.map(({ path }) => path)]).toEqual([400, ['segment']]);
});

test('behaviour counts events of a name within days, and a deleted user is in no segment', async () => {
  const at = (userId: string, daysAgo: number) =>
    anEvent({ userId, event: 'ran', timestampMs: Date.now() - daysAgo * DAY_MS });
  for (const id of ['often', 'once', 'former', 'never']) await setPlan('d', 'user', id, 'pro', 1);
  await query.store('d', [at('often', 1), at('often', 2), at('once', 1), at('former', 20), at('never', -1)]);
  const members = async (behaviour: object) => {
    await put('runners', { of: 'users', behaviour: [behaviour] }, 'd');
    const { body } = await query.get('/users?segment=runners', 'd');
    const { body: described } = await send(query, 'GET', '/segments/runners', undefined, 'd');
    expect(described).toMatchObject({ count: body.results.length });
    return body.results.map(({ foreignId }) => foreignId);
  };
  expect(await members({ did: 'ran', times: 2, days: 14 })).toEqual(['often']);
  expect(await members({ did: 'ran', days: 14 })).toEqual(['often', 'once']);
  expect(await members({ did: 'ran', times: 0, days: 14 })).toEqual(['former', 'never']);
  expect(await members({ did: 'ran', days: 30 })).toEqual(['former', 'often', 'once']);
  const deletion = { workspace_id: 'd', user_id: 'once', version: Date.now() * 1_000 };
  await query.insert('user_deletions', [deletion]);
  await query.insert('pending_deletions', [{ ...deletion, stored_at: 1 }]);
  await wait(DELETIONS_FORGOTTEN_MS);
  expect(await members({ did: 'ran', days: 14 })).toEqual(['often']);
  expect((await query.get('/users?segment[ne]=runners', 'd')).body.results).toHaveLength(2);
  // Who comes back has done nothing of it since.
  const since = {
    other_id: String(deletion.version),
    first_seen_at: 1,
    last_seen_at: 1,
    version: deletion.version + 1,
  };
  await query.insert('entities', [{ workspace_id: 'd', kind: 'user', id: 'once', ...since }]);
  expect(await members({ did: 'ran', times: 0, days: 14 })).toEqual(['former', 'never', 'once']);
});

test('a segment that a view names cannot be deleted, and the refusal says which view', async () => {
  await put('paying', PAYING, 'e');
  await put('pay', PAYING, 'e');
  const parameters = { steps: 'a,b', range: '7d', 'step2.segment[in]': 'paying', segment: 'paying' };
  const view = { name: 'Sign-ups', report: 'funnel', parameters };
  const { body: created } = await send(query, 'POST', '/views', view, 'e');
  const { body: dashboard } = await send(
    query,
    'POST',
    '/dashboards',
    { name: 'D', tiles: [{ view: created.id, width: 1 }] },
    'e',
  );
  expect((await send(query, 'GET', `/dashboards/${dashboard.id}/tiles/${created.id}`, undefined, 'e')).status).toBe(
    200,
  );
  const refused = await remove('paying', 'e');
  expect(refused).toMatchObject({ status: 409, body: { code: 'segment_in_use' }, paths: [`views.${created.id}`] });
  expect((await remove('pay', 'e')).status).toBe(204);
  // That of another workspace has the same name.
  await put('paying', PAYING, 'h');
  expect((await remove('paying', 'h')).status).toBe(204);
  const unknown = await send(query, 'POST', '/views', { ...view, parameters: { ...parameters, segment: 'pay' } }, 'e');
  expect([unknown.status, unknown.paths]).toEqual([400, ['parameters.segment']]);
  await send(query, 'DELETE', `/views/${created.id}`, undefined, 'e');
  expect((await remove('paying', 'e')).status).toBe(204);
});

test('streams and webhooks follow what is known, and refuse behaviour', async () => {
  await put('paying', PAYING, 'f');
  await put('active', { of: 'users', behaviour: [{ did: 'e' }] }, 'f');
  const url = 'https://example.com/';
  const refused = await send(query, 'POST', '/webhooks', { url, filter: { 'segment[ne]': 'active' } }, 'webhooks-f');
  expect([refused.status, refused.paths]).toEqual([400, ['filter.segment[ne]']]);
  // Behind the webhook, since a stream that is not refused does not end.
  const { status, body } = await query.get('/events/stream?segment=active', 'f');
  expect([status, body.errors.map(({ path }) => path)]).toEqual([400, ['segment']]);
  const created = await send(query, 'POST', '/webhooks', { url, filter: { segment: 'paying' } }, 'webhooks-f');
  expect(created.status).toBe(201);
  const uses = [`webhooks.${created.body.id}`];
  expect(await remove('paying', 'f')).toMatchObject({ status: 409, paths: uses });
  const changed = { ...PAYING, behaviour: [{ did: 'e' }] };
  expect(await put('paying', changed, 'f')).toMatchObject({ status: 409, paths: uses });
  expect((await put('paying', { ...PAYING, of: 'users' }, 'f')).status).toBe(200);
  await send(query, 'DELETE', `/webhooks/${created.body.id}`, undefined, 'webhooks-f');
  expect((await put('paying', changed, 'f')).status).toBe(200);
});

test('a list takes segments of its own kind alone, and another workspace has other ones', async () => {
  await put('paying', PAYING, 'g');
  const { status, body } = await query.get('/users?segment=paying', 'g');
  expect([status, body.errors.map(({ message }) => message)]).toEqual([400, ['must name segments of users']]);
  expect((await query.get('/events?segment=paying', 'h')).status).toBe(400);
  expect((await query.get('/organizations?segment=paying', 'g')).status).toBe(200);
});

test('responses are those of the OpenAPI document', async () => {
  const checker = createDocumentChecker((await query.app.inject('/openapi.json')).json());
  for (const [operation, url, payload, key] of [
    [
      'PUT /segments/{name}',
      '/segments/idle',
      { of: 'users', behaviour: [{ did: 'e', times: 0, days: 14 }] },
      'admin-h',
    ],
    ['PUT /segments/{name}', '/segments/idle', {}, 'admin-h'],
    ['PUT /segments/{name}', '/segments/idle', PAYING, 'h'],
    ['GET /segments', '/segments', undefined, 'h'],
    ['GET /segments/{name}', '/segments/idle', undefined, 'h'],
    ['GET /segments/{name}', '/segments/nothing', undefined, 'h'],
    ['DELETE /segments/{name}', '/segments/nothing', undefined, 'admin-h'],
  ] as const) {
    const [method] = operation.split(' ') as ['GET'];
    const headers = { authorization: `Bearer ${key}` };
    const response = await query.app.inject({ method, url, headers, ...(payload && { payload }) });
    expect([operation, response.statusCode < 500]).toEqual([operation, true]);
    expect(checker.errorsOfResponse(operation, response), response.body).toBeUndefined();
  }
});
