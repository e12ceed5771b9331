import { eventually } from '@sluice/shared/testing/eventually';
import { createDocumentChecker } from '@sluice/shared/testing/openapi';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { PROPERTY_FILTERS_MAX } from '../http/limits.ts';
import { type QueryService, startQuery } from '../testing/query-service.ts';
import { manage, Receiver, WEBHOOKS_ENV } from '../testing/webhooks.ts';
import { FILTER_CHARACTERS_MAX, FILTERS_MAX, URL_CHARACTERS_MAX } from './webhook-request.ts';
import { WEBHOOK_BODY_BYTES_MAX } from './webhooks-route.ts';

let query: QueryService;

beforeAll(async () => {
  const env = { ...WEBHOOKS_ENV, WEBHOOK_DELIVERY: 'false', WEBHOOKS_PER_WORKSPACE: '3' };
  query = await startQuery(inject('clickhouseUrl'), env);
});
afterAll(() => query.stop());

const URL = 'https://example.com/hook';

test('a webhook is created with a secret that is shown once, listed, changed and deleted', async () => {
  const filter = { event: 'signed_up', 'properties.plan[in]': 'pro,team' };
  const { status, body: created } = await manage(query, 'POST', '/webhooks', { url: URL, filter, batched: true });
  expect(status).toBe(201);
  expect(created).toMatchObject({ url: URL, filter, batched: true, state: 'active', pausedBecause: null });
  expect(created.secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/);
  const { secret: _, ...shown } = created;
  expect((await manage(query, 'GET', '/webhooks')).body).toEqual({ webhooks: [shown], limit: 1_000, nextCursor: null });
  const path = `/webhooks/${created.id}`;
  expect((await manage(query, 'GET', path)).body).toEqual(shown);
  const changed = await manage(query, 'PATCH', path, { filter: {}, batched: false, state: 'paused' });
  expect(changed.body).toMatchObject({
    url: URL,
    filter: {},
    batched: false,
    state: 'paused',
    pausedBecause: 'client',
  });
  expect((await manage(query, 'PATCH', path, { state: 'active' })).body).toMatchObject({ state: 'active' });
  await manage(query, 'PATCH', path, { state: 'paused' });
  expect((await manage(query, 'POST', `${path}/resume`)).body).toMatchObject({ state: 'active', pausedBecause: null });
  const rotated = (await manage(query, 'POST', `${path}/rotate`)).body;
  expect(rotated.secret).not.toBe(created.secret);
  expect(rotated['previousSecretUntil']).toEqual(expect.any(String));
  expect((await manage(query, 'DELETE', path)).status).toBe(204);
  expect((await manage(query, 'GET', path)).status).toBe(404);
  expect((await manage(query, 'GET', '/webhooks')).body).toMatchObject({ webhooks: [] });
});

test('a webhook belongs to its workspace alone, and needs the scope', async () => {
  const { body } = await manage(query, 'POST', '/webhooks', { url: URL }, 'b');
  for (const [method, path] of [
    ['GET', ''],
    ['PATCH', ''],
    ['DELETE', ''],
    ['POST', '/rotate'],
    ['POST', '/resume'],
    ['POST', '/test'],
    ['POST', '/replay?from=2026-03-01'],
    ['GET', '/deliveries'],
  ] as const) {
    const response = await manage(
      query,
      method,
      `/webhooks/${body.id}${path}`,
      method === 'PATCH' ? {} : undefined,
      'c',
    );
    expect([path, response.status]).toEqual([path, 404]);
  }
  const headers = { authorization: 'Bearer b' };
  const response = await query.app.inject({ url: '/webhooks', headers });
  expect(response.json()).toMatchObject({ status: 403, code: 'missing_scope' });
});

test.each([
  [{ url: 'ftp://example.com/' }, 'url'],
  [{ url: 'https://user:secret@example.com/' }, 'url'],
  [{ url: 'http://169.254.169.254/latest/meta-data' }, 'url'],
  [{ url: 'http://[::1]/' }, 'url'],
  [{ url: 'http://2130706434/' }, 'url'],
  [{ url: URL, filter: { colour: 'red' } }, 'filter.colour'],
  [{ url: URL, filter: { startDate: '2026-03-01' } }, 'filter.startDate'],
  [{ url: URL, filter: { after: 'x' } }, 'filter.after'],
  [{ url: URL, filter: { 'uuid[lt]': 'x' } }, 'filter.uuid[lt]'],
  [{ url: URL, colour: 'red' }, 'colour'],
  [{}, 'url'],
])('%j is refused, and the error names %s', async (given, path) => {
  const { status, body } = await manage(query, 'POST', '/webhooks', given, 'd');
  expect([status, body['code']]).toEqual([400, 'invalid_request']);
  expect((body['errors'] as { path: string }[]).map((error) => error.path)).toEqual([path]);
});

/** Returns the paths of the errors of a creation; none when it is accepted. */
async function errorsOf(given: object): Promise<readonly string[]> {
  const { status, body } = await manage(query, 'POST', '/webhooks', given, 'h');
  if (status === 201) await manage(query, 'DELETE', `/webhooks/${body.id}`, undefined, 'h');
  return status === 201 ? [] : (body['errors'] as { path: string }[]).map(({ path }) => path);
}

test('each limit of a webhook: at it, it is created, and beyond it, it is refused', async () => {
  const urlOf = (characters: number) => URL.padEnd(characters, 'x');
  expect(await errorsOf({ url: urlOf(URL_CHARACTERS_MAX) })).toEqual([]);
  expect(await errorsOf({ url: urlOf(URL_CHARACTERS_MAX + 1) })).toEqual(['url']);
  const textOf = (characters: number) => ({ url: URL, filter: { event: 'x'.repeat(characters) } });
  expect(await errorsOf(textOf(FILTER_CHARACTERS_MAX))).toEqual([]);
  expect(await errorsOf(textOf(FILTER_CHARACTERS_MAX + 1))).toEqual(['filter.event']);
  const filterOf = (members: number) => ({
    url: URL,
    filter: Object.fromEntries(Array.from({ length: members }, (_, index) => [`properties.p${index}`, 'x'])),
  });
  // There may be fewer filters on properties than members.
  expect(await errorsOf(filterOf(PROPERTY_FILTERS_MAX))).toEqual([]);
  expect(await errorsOf(filterOf(FILTERS_MAX))).not.toContain('filter');
  expect(await errorsOf(filterOf(FILTERS_MAX + 1))).toEqual(['filter']);
  const headers = { authorization: 'Bearer webhooks-h', 'content-type': 'application/json' };
  const bodyOf = (bytes: number) => ({ headers, payload: JSON.stringify({ url: URL }).padEnd(bytes, ' ') });
  const post = { method: 'POST', url: '/webhooks' } as const;
  expect((await query.app.inject({ ...post, ...bodyOf(WEBHOOK_BODY_BYTES_MAX) })).statusCode).toBe(201);
  expect((await query.app.inject({ ...post, ...bodyOf(WEBHOOK_BODY_BYTES_MAX + 1) })).json()).toMatchObject({
    code: 'body_too_large',
  });
});

test('a workspace has no more webhooks than it may have', async () => {
  // Also when they are created at once.
  const statuses = await Promise.all(
    [1, 2, 3, 4, 5].map(async () => (await manage(query, 'POST', '/webhooks', { url: URL }, 'e')).status),
  );
  expect(statuses.sort()).toEqual([201, 201, 201, 400, 400]);
  expect((await manage(query, 'POST', '/webhooks', { url: URL }, 'e')).body).toMatchObject({ code: 'invalid_request' });
});

test('a test is sent at once, and is in the log of deliveries', async () => {
  await using receiver = await Receiver.start();
  const { body: created } = await manage(query, 'POST', '/webhooks', { url: receiver.url }, 'f');
  const path = `/webhooks/${created.id}`;
  const { body: sent } = await manage(query, 'POST', `${path}/test`, undefined, 'f');
  expect(sent).toMatchObject({ delivered: true, status: 204, error: null });
  expect(receiver.received.map(({ body }) => JSON.parse(body))).toMatchObject([
    { type: 'test', data: { webhook: created.id } },
  ]);
  receiver.behaviour = (_, response) => response.writeHead(500).end('no');
  const failed = await manage(query, 'POST', `${path}/test`, undefined, 'f');
  expect(failed.body).toMatchObject({ delivered: false, status: 500, error: 'the receiver answered 500' });
  await manage(query, 'POST', `${path}/test`, undefined, 'f');
  // Those of one second too; one in 156 takes the place of another.
  const log = async () => (await manage(query, 'GET', `${path}/deliveries`, undefined, 'f')).body['deliveries'];
  await eventually(async () => ((await log()) as object[]).length).toBeGreaterThan(1);
});

test('tests take no place of deliveries in the log', async () => {
  const { body } = await manage(query, 'POST', '/webhooks', { url: URL }, 'h');
  const line = { webhook_id: body.id, events: 1, attempt: 1 };
  const now = Date.now();
  await query.insert('webhook_deliveries', [
    ...Array.from({ length: 100 }, (_, slot) => ({
      ...line,
      slot,
      at: now - 1_000 + slot,
      message_id: `d${slot}`,
      type: 'event',
    })),
    ...Array.from({ length: 120 }, (_, test) => ({
      ...{ ...line, slot: 100 + test, at: now + test, message_id: `t${test}`, type: 'test' },
    })),
  ]);
  const { deliveries } = (await manage(query, 'GET', `/webhooks/${body.id}/deliveries`, undefined, 'h')).body;
  const ids = (deliveries as { id: string }[]).map(({ id }) => id);
  expect(ids).toHaveLength(200);
  expect(ids.slice(0, 100)).toEqual(Array.from({ length: 100 }, (_, index) => `t${119 - index}`));
  expect(ids.slice(100)).toEqual(Array.from({ length: 100 }, (_, index) => `d${99 - index}`));
});

test('the responses are as documented', async () => {
  const checker = createDocumentChecker((await query.app.inject('/openapi.json')).json());
  const headers = { authorization: 'Bearer webhooks-g' };
  const { body } = await manage(query, 'POST', '/webhooks', { url: URL }, 'g');
  await query.insert('webhook_deliveries', [
    { webhook_id: body.id, slot: 1, at: 1e12, message_id: 'm', type: 'event', events: 1, attempt: 2, error: 'e' },
  ]);
  for (const [operation, method, url, payload] of [
    ['POST /webhooks', 'POST', '/webhooks', { url: URL }],
    ['GET /webhooks', 'GET', '/webhooks', undefined],
    ['GET /webhooks/{id}', 'GET', `/webhooks/${body.id}`, undefined],
    ['PATCH /webhooks/{id}', 'PATCH', `/webhooks/${body.id}`, { state: 'paused' }],
    ['POST /webhooks/{id}/rotate', 'POST', `/webhooks/${body.id}/rotate`, undefined],
    ['POST /webhooks/{id}/resume', 'POST', `/webhooks/${body.id}/resume`, undefined],
    ['POST /webhooks/{id}/replay', 'POST', `/webhooks/${body.id}/replay?from=2026-03-01`, undefined],
    ['POST /webhooks/{id}/replay', 'POST', `/webhooks/${body.id}/replay`, undefined],
    ['GET /webhooks/{id}/deliveries', 'GET', `/webhooks/${body.id}/deliveries`, undefined],
    ['GET /webhooks/{id}', 'GET', '/webhooks/nothing', undefined],
  ] as const) {
    const response = await query.app.inject({ method, url, headers, ...(payload && { payload }) });
    expect([operation, response.statusCode < 500]).toEqual([operation, true]);
    expect(checker.errorsOfResponse(operation, response), response.body).toBeUndefined();
  }
});

test('without an account for webhooks they are off, and say so', async () => {
  const off = await startQuery(inject('clickhouseUrl'));
  try {
    expect(await manage(off, 'GET', '/webhooks')).toMatchObject({
      status: 501,
      body: { code: 'webhooks_not_available' },
    });
  } finally {
    await off.stop();
  }
});
