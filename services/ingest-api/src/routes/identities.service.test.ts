import { entityHash } from '@sluice/shared/rows/row-hashes';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { type Ingest, post, startIngest } from '../testing/ingest.ts';

let ingest: Ingest;

beforeAll(async () => {
  ingest = await startIngest(inject('kafkaBrokers'), { NOBODY_IDS_ADDED: 'kiosk,Demo' });
});
afterAll(() => ingest.stop());

/** What Kafka has of visitors, once it has so many rows of changes. */
async function factsOf(count: number, ...visitors: string[]) {
  const found = (await ingest.read('entities', count)).flatMap(({ partition, rows }) =>
    rows.filter(({ kind }) => kind === 'visitor').map((row) => ({ partition, ...row }) as Record<string, unknown>),
  );
  return found.filter(({ id }) => visitors.includes(String(id)));
}

async function remove(query: string, { path = '/v1/identities', key = 'all' } = {}) {
  return await ingest.app.inject({
    method: 'DELETE',
    url: `${path}${query}`,
    headers: { authorization: `Bearer ${key}` },
  });
}

const errorsOf = (response: { json(): { errors?: { path: string }[] } }) =>
  (response.json().errors ?? []).map(({ path }) => path);

test('what names both a visitor and a user links them, once, in the partition of the visitor', async () => {
  const events = [{ event: 'e', anonymousId: 'v1' }, { event: 'e', anonymousId: 'v1' }, { event: 'e' }];
  for (let time = 0; time < 2; time += 1) {
    expect((await post(ingest.app, { foreignId: 'jane', events }, { path: '/v1/public/users' })).statusCode).toBe(202);
  }
  const calls = [
    { type: 'identify', userId: 'jane', anonymousId: 'v2', traits: { plan: 'pro' } },
    { type: 'track', event: 'e', anonymousId: 'v3' },
    { type: 'track', event: 'e', userId: 'guest', anonymousId: 'v3' },
    { type: 'track', event: 'e', userId: 'demo', anonymousId: 'v3' },
  ];
  expect((await post(ingest.app, { batch: calls }, { path: '/v1/batch' })).statusCode).toBe(200);
  const identify = { event: '$identify', distinct_id: 'bob', properties: { $anon_distinct_id: 'v2' } };
  expect((await post(ingest.app, { api_key: 'all', ...identify }, { path: '/e' })).statusCode).toBe(200);
  const facts = await factsOf(4, 'v1', 'v2', 'v3');
  const pairs = facts.map(({ id, user_id, operation }) => `${operation} ${id} ${user_id}`);
  expect(pairs.sort()).toEqual(['link v1 jane', 'link v2 bob', 'link v2 jane']);
  for (const { id, partition } of facts) expect(partition).toBe(entityHash('test', 'visitor', String(id)) % 3);
  const stored = (await ingest.read('events', 8)).flatMap(({ rows }) => rows);
  const versions = stored.filter((row) => row['anonymous_id'] === 'v1').map((row) => row['received_at']);
  expect(versions).toContain(facts.find(({ id }) => id === 'v1')?.['version']);
});

test('somebody says whose a visitor is, and that it is nobody’s', async () => {
  const said = await post(ingest.app, { anonymousId: 'v+4', userId: 'jane' }, { path: '/v1/identities' });
  expect([said.statusCode, said.json()]).toEqual([202, { status: 'accepted', anonymousId: 'v+4', userId: 'jane' }]);
  const takenBack = await remove('?anonymousId=v%2B4');
  expect([takenBack.statusCode, takenBack.json()]).toEqual([202, { status: 'accepted', anonymousId: 'v+4' }]);
  const [first, second] = (await factsOf(6, 'v+4')).toSorted((a, b) => Number(a['version']) - Number(b['version']));
  expect(first).toMatchObject({ operation: 'say', kind: 'visitor', user_id: 'jane', workspace_id: 'test' });
  expect(second).toMatchObject({ operation: 'say', kind: 'visitor' });
  expect(second).not.toHaveProperty('user_id');
});

test('an error names what is wrong, and a body that is too large is not read', async () => {
  const say = (body: unknown, key = 'all') => post(ingest.app, body, { path: '/v1/identities', key });
  expect(errorsOf(await say({ anonymousId: 'a' }))).toEqual(['userId']);
  expect(errorsOf(await say({ anonymousId: 'undefined', userId: 'jane' }))).toEqual(['anonymousId']);
  expect(errorsOf(await say({ anonymousId: 'Kiosk', userId: 'jane' }))).toEqual(['anonymousId']);
  expect(errorsOf(await say({ anonymousId: 'a', userId: '0', colour: 1 }))).toEqual(['userId', 'colour']);
  expect((await say('{"anonymousId":')).json()).toMatchObject({ code: 'malformed_json' });
  expect((await say({ anonymousId: 'a', userId: 'x'.repeat(20_000) })).json()).toMatchObject({
    code: 'body_too_large',
  });
  expect((await say({ anonymousId: 'a', userId: 'jane' }, 'ingest-only')).statusCode).toBe(403);
  expect(errorsOf(await remove('?anonymousId=a+b'))).toEqual(['anonymousId']);
  expect(errorsOf(await remove('?anonymousId=a&anonymousId=b'))).toEqual(['anonymousId']);
});

const MERGE = '/v1/identities/merge';

test('somebody says whom a user became, and takes it back: facts in one partition, which no visitor has', async () => {
  const merged = await post(ingest.app, { userId: 'old jane', into: 'jane' }, { path: MERGE });
  expect([merged.statusCode, merged.json()]).toEqual([202, { status: 'accepted', userId: 'old jane', into: 'jane' }]);
  const takenBack = await remove('?userId=old%20jane', { path: MERGE });
  expect([takenBack.statusCode, takenBack.json()]).toEqual([202, { status: 'accepted', userId: 'old jane' }]);
  const facts = (await factsOf(8, '\uffffold jane')).toSorted((a, b) => Number(a['version']) - Number(b['version']));
  expect(facts).toMatchObject([
    { operation: 'say', kind: 'visitor', user_id: 'jane', workspace_id: 'test' },
    { operation: 'say', kind: 'visitor' },
  ]);
  expect(facts[1]).not.toHaveProperty('user_id');
  expect(new Set(facts.map(({ partition }) => partition)).size).toBe(1);
});

test('a merge is of two different users, and takes the scope admin', async () => {
  const merge = (body: unknown, key = 'all') => post(ingest.app, body, { path: MERGE, key });
  expect(errorsOf(await merge({ userId: 'a' }))).toEqual(['into']);
  expect(errorsOf(await merge({ userId: 'a', into: 'a' }))).toEqual(['into']);
  expect(errorsOf(await merge({ userId: 'null', into: 'guest' }))).toEqual(['userId', 'into']);
  expect(errorsOf(await merge({ userId: '\uffffa', into: '\uffffb' }))).toEqual(['userId', 'into']);
  expect(errorsOf(await remove('?userId=a+b', { path: MERGE }))).toEqual(['userId']);
  expect(errorsOf(await remove('', { path: MERGE }))).toEqual(['userId']);
  expect((await merge({ userId: 'a', into: 'b' }, 'deleter')).statusCode).toBe(403);
  expect((await remove('?userId=a', { path: MERGE, key: 'deleter' })).statusCode).toBe(403);
});

test('nothing that names a visitor can say whom a user became, or take that back', async () => {
  const visitor = '\uffffvictim';
  const events = [{ event: 'e', anonymousId: visitor }];
  expect((await post(ingest.app, { foreignId: 'thief', events }, { path: '/v1/public/users' })).statusCode).toBe(202);
  const calls = [
    { type: 'identify', userId: 'thief', anonymousId: visitor },
    { type: 'alias', userId: 'thief', previousId: visitor },
  ];
  expect((await post(ingest.app, { batch: calls }, { path: '/v1/batch' })).statusCode).toBe(200);
  const said = await post(ingest.app, { anonymousId: visitor, userId: 'thief' }, { path: '/v1/identities' });
  expect(errorsOf(said)).toEqual(['anonymousId']);
  expect(errorsOf(await remove(`?anonymousId=${encodeURIComponent(visitor)}`))).toEqual(['anonymousId']);
  // The facts of this one come after all others.
  expect((await post(ingest.app, { anonymousId: 'last', userId: 'jane' }, { path: '/v1/identities' })).statusCode).toBe(
    202,
  );
  expect(await factsOf(9, visitor)).toEqual([]);
});
