import { visitorOf } from '@sluice/shared/rows/deleted-person';
import { eventually } from '@sluice/shared/testing/eventually';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { type Ingest, post, startIngest } from '../testing/ingest.ts';

let ingest: Ingest;

beforeAll(async () => {
  ingest = await startIngest(inject('kafkaBrokers'), { CORS_ORIGINS: 'https://app.example' });
});
afterAll(() => ingest.stop());

async function remove(query: string, headers: Record<string, string> = {}) {
  return await ingest.app.inject({
    method: 'DELETE',
    url: `/v1/users${query}`,
    headers: { authorization: 'Bearer all', ...headers },
  });
}

const versionOf = (row: Readonly<Record<string, unknown>>) => Number(row['version']);

test('POST /v1/public/users sets properties of the user and stores its events', async () => {
  const response = await post(
    ingest.app,
    { foreignId: 'ada', events: [{ event: 'e' }], properties: { name: 'Ada' } },
    { path: '/v1/public/users' },
  );
  expect(response.statusCode).toBe(202);
  const [event] = (await ingest.read('events', 1)).flatMap(({ rows }) => rows);
  expect(event).toMatchObject({ user_id: 'ada', event: 'e' });
  expect(event).not.toHaveProperty('group_id');
  const changes = (await ingest.read('entities', 1)).flatMap(({ rows }) => rows);
  expect(changes).toMatchObject([{ kind: 'user', id: 'ada', operation: 'set', property: 'name', value: '"Ada"' }]);
});

test('DELETE responds 202, also for an unknown user, and every partition of the events gets the deletion', async () => {
  const response = await remove('?foreignId=b%C3%B6b%20%F0%9F%98%80');
  expect([response.statusCode, response.json()]).toEqual([202, { status: 'accepted', foreignId: 'böb 😀' }]);
  const messages = (await ingest.read('events', 4)).filter(({ kind }) => kind === 'changes');
  expect(messages.map(({ partition }) => partition).sort()).toEqual([0, 1, 2]);
  for (const { rows } of messages)
    expect(rows).toMatchObject([{ kind: 'user', id: 'böb 😀', operation: 'delete', workspace_id: 'test' }]);
});

test('DELETE of an anonymous visitor is a deletion in every partition of the events, which names no user', async () => {
  const response = await remove('?anonymousId=a%2B1');
  expect([response.statusCode, response.json()]).toEqual([202, { status: 'accepted', anonymousId: 'a+1' }]);
  const deletions = async () =>
    (await ingest.read('events', 0)).flatMap(({ rows }) => rows.filter(({ id }) => id === visitorOf('a+1')));
  await eventually(async () => (await deletions()).length).toBe(3);
  expect((await deletions())[0]).toMatchObject({ kind: 'user', operation: 'delete', workspace_id: 'test' });
});

test('DELETE covers what was accepted up to before, and never what is yet to come', async () => {
  const versions = async (id: string) =>
    (await ingest.read('events', 0)).flatMap(({ rows }) => rows.filter((row) => row['id'] === id)).map(versionOf);
  const begun = Date.now() * 1_000;
  expect((await remove('?foreignId=again&before=2026-01-02T03:04:05.678Z')).statusCode).toBe(202);
  expect((await remove('?foreignId=early&before=2999-01-01')).statusCode).toBe(202);
  const before = Date.UTC(2026, 0, 2, 3, 4, 5, 678) * 1_000;
  await eventually(() => versions('again')).toEqual([before, before, before]);
  await eventually(async () => (await versions('early')).length).toBe(3);
  for (const version of await versions('early')) {
    expect(version).toBeGreaterThanOrEqual(begun);
    expect(version).toBeLessThanOrEqual((Date.now() + 1) * 1_000);
  }
  const { errors } = (await remove('?foreignId=again&before=soon')).json();
  expect(errors).toMatchObject([{ path: 'before' }]);
});

test('a plus that is escaped is a plus, and one that is not is refused: it may be a space', async () => {
  expect((await remove('?foreignId=jane%2Bx@example.com')).json()).toMatchObject({ foreignId: 'jane+x@example.com' });
  expect((await remove('?foreignId=jane%20x@example.com')).json()).toMatchObject({ foreignId: 'jane x@example.com' });
  const { errors } = (await remove('?foreignId=jane+x@example.com')).json();
  const plus = (path: string) => ({
    ...{ path, reason: 'invalid_value', code: 'custom' },
    message: expect.stringContaining('%2B'),
  });
  expect(errors).toEqual([plus('foreignId')]);
  const ofTime = (await remove('?foreignId=jane&before=2026-01-02T03:04:05+01:00')).json().errors;
  expect(ofTime).toContainEqual(plus('before'));
  expect(ofTime).not.toContainEqual(plus('foreignId'));
});

test('a question mark in an identifier is part of it', async () => {
  expect((await remove('?foreignId=who?me')).json()).toMatchObject({ foreignId: 'who?me' });
});

test.each([
  ['a JSON content type without a body', '?foreignId=x', { 'content-type': 'application/json' }],
  ['a trailing slash', '/?foreignId=x', {}],
])('DELETE accepts %s', async (_what, query, headers) => {
  expect((await remove(query, headers)).statusCode).toBe(202);
});

test.each([
  ['', 'foreignId'],
  ['?foreignId=', 'foreignId'],
  ['?foreignId=a&foreignId=b', 'foreignId'],
  [`?foreignId=${'x'.repeat(513)}`, 'foreignId'],
  ['?foreignId=a&colour=red', 'colour'],
  ['?foreignId=a&anonymousId=a', 'anonymousId'],
  ['?anonymousId=', 'anonymousId'],
  ['?foreignId=%ff', 'foreignId'],
  ['?foreignId=jane+x@example.com', 'foreignId'],
])('DELETE refuses %j', async (query, path) => {
  const response = await remove(query);
  expect(response.json()).toMatchObject({ status: 400, code: 'invalid_request', errors: [{ path }] });
});

test('DELETE needs the scope delete', async () => {
  const response = await remove('?foreignId=a', { authorization: 'Bearer ingest-only' });
  expect(response.json()).toMatchObject({ status: 403, code: 'missing_scope' });
});

test('a page of a configured origin may submit, and of no other', async () => {
  const preflight = await ingest.app.inject({
    method: 'OPTIONS',
    url: '/v1/public/userGroups',
    headers: {
      origin: 'https://app.example',
      'access-control-request-method': 'POST',
      'access-control-request-headers': 'authorization,content-type',
    },
  });
  expect(preflight.statusCode).toBe(204);
  expect(preflight.headers['access-control-allow-origin']).toBe('https://app.example');
  const other = await ingest.app.inject({
    method: 'OPTIONS',
    url: '/v1/public/userGroups',
    headers: { origin: 'https://evil.example', 'access-control-request-method': 'POST' },
  });
  expect(other.headers['access-control-allow-origin']).not.toBe('https://evil.example');
});
