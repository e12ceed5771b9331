import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { mergeKeyOf } from '@sluice/shared/rows/merged-user';
import { until } from '@sluice/shared/testing/until';
import { afterAll, beforeAll, beforeEach, describe, expect, inject, test } from 'vitest';
import { anEvent, aRegister, type QueryService, startQuery, type TestEvent } from '../../testing/query-service.ts';
import { NAMED_MERGES_MAX } from '../events/identity.ts';
import { MERGED_MAX } from './merges.ts';

/** Stands in for ingest-api: the page of a user in tests/clients merges through the real one. */
const received: (readonly [method: string | undefined, url: string | undefined, body: string])[] = [];
const ingest = createServer(async (request, response) => {
  let body = '';
  for await (const chunk of request) body += chunk;
  received.push([request.method, request.url, body]);
  response.writeHead(202, { 'content-type': 'application/json' }).end('{"from":"ingest-api"}');
});

let query: QueryService;

beforeAll(async () => {
  ingest.listen(0, '127.0.0.1');
  await once(ingest, 'listening');
  const { port } = ingest.address() as AddressInfo;
  query = await startQuery(inject('clickhouseUrl'), { INGEST_URLS: `http://127.0.0.1:${port}/` });
});
afterAll(async () => {
  await query.stop();
  ingest.close();
});
beforeEach(() => {
  received.length = 0;
});

const START_MS = Date.UTC(2026, 2, 1);
const VERSION = START_MS * 1_000;

/** Stores what somebody said of a user; without `into`, that it is itself. */
async function say(workspace: string, userId: string, into = '', version = VERSION): Promise<void> {
  const anonymous_id = mergeKeyOf(userId);
  await query.insert('identity_links', [{ workspace_id: workspace, anonymous_id, user_id: into, version, said: 1 }]);
}

const postMerge = (workspace: string, body: unknown, key = `admin-${workspace}`) =>
  query.app.inject({
    ...{ method: 'POST', url: '/identities/merge', headers: { authorization: `Bearer ${key}` } },
    payload: body as object,
  });

async function get(path: string, workspace: string) {
  const { status, body } = await query.get(path, workspace);
  expect([path, status, body]).toEqual([path, 200, expect.anything()]);
  return body;
}

test('a merge is passed on as it is, and taking it back as well', async () => {
  const body = { userId: 'old', into: 'new' };
  const merged = await postMerge('a', body);
  expect([merged.statusCode, merged.json()]).toEqual([202, { from: 'ingest-api' }]);
  const headers = { authorization: 'Bearer admin-a' };
  const url = '/identities/merge?userId=a%2Bb';
  expect((await query.app.inject({ method: 'DELETE', url, headers })).statusCode).toBe(202);
  expect(received).toEqual([
    ['POST', '/v1/identities/merge', JSON.stringify(body)],
    ['DELETE', '/v1/identities/merge?userId=a%2Bb', ''],
  ]);
});

test('a key without the scope admin merges nobody, and takes nothing back', async () => {
  expect((await postMerge('a', { userId: 'old', into: 'new' }, 'a')).json()).toMatchObject({ code: 'missing_scope' });
  const remove = { method: 'DELETE', url: '/identities/merge?userId=old' } as const;
  const refused = await query.app.inject({ ...remove, headers: { authorization: 'Bearer a' } });
  expect(refused.json()).toMatchObject({ code: 'missing_scope' });
  expect((await postMerge('a', { userId: 'old' })).json()).toMatchObject({ errors: [{ path: 'into' }] });
  expect(received).toEqual([]);
});

test('a chain is refused from both ends, and what was said before may be said anew', async () => {
  await say('b', 'old', 'jane');
  const merge = async (userId: string, into: string) => {
    const { statusCode, body } = await postMerge('b', { userId, into });
    const { code, detail, errors = [] } = JSON.parse(body);
    return [statusCode, code, errors.map(({ path }: { path: string }) => path), detail];
  };
  expect(await merge('jane', 'kim')).toEqual([409, 'merge_chain', ['userId'], expect.stringContaining('"old" became')]);
  expect(await merge('kim', 'old')).toEqual([409, 'merge_chain', ['into'], expect.stringContaining('became "jane"')]);
  expect(await merge('jane', 'old')).toEqual([409, 'merge_chain', ['into'], expect.stringContaining('take that back')]);
  expect(received).toEqual([]);
  expect((await merge('old', 'kim'))[0]).toBe(202);
  expect((await merge('kim', 'jane'))[0]).toBe(202);
  await say('b', 'old', '', VERSION + 1);
  expect((await merge('jane', 'kim'))[0]).toBe(202);
});

test('no more users become one than a deletion of that one can name', async () => {
  const links = Array.from({ length: MERGED_MAX }, (_, index) => ({
    ...{ workspace_id: 'c', anonymous_id: mergeKeyOf(`old ${index}`), user_id: 'jane', version: VERSION, said: 1 },
  }));
  await query.insert('identity_links', links);
  expect((await postMerge('c', { userId: 'one more', into: 'jane' })).json()).toMatchObject({
    errors: [{ path: 'into', code: 'too_big' }],
  });
  expect((await postMerge('c', { userId: 'old 7', into: 'jane' })).statusCode).toBe(202);
});

test('the list has each merge once, also those that do not count', async () => {
  await say('d', 'old', 'jane');
  await say('d', 'older', 'jane', VERSION + 1_000);
  await say('d', 'one', 'other');
  await say('d', 'other', 'one');
  await say('d', 'gone', 'jane');
  await say('d', 'gone', '', VERSION + 1);
  const list = async (parameters: string) => (await get(`/identities/merges?${parameters}`, 'd')).results;
  const mergedAt = new Date(START_MS).toISOString();
  const all = [
    { userId: 'old', into: 'jane', mergedAt, counts: true },
    { userId: 'older', into: 'jane', mergedAt: new Date(START_MS + 1).toISOString(), counts: true },
    { userId: 'one', into: 'other', mergedAt, counts: false },
    { userId: 'other', into: 'one', mergedAt, counts: false },
  ];
  expect(await list('')).toEqual(all);
  expect(await list('into=jane')).toEqual(all.slice(0, 2));
  expect(await list('userId=other')).toEqual([all[3]]);
  // Each of a circle stays who it is.
  await query.store('d', [anEvent({ userId: 'one' }), anEvent({ userId: 'other' })]);
  const linked = async () =>
    (await get('/events?identity=linked', 'd')).results.map(({ userId, linkedUserId }) => userId === linkedUserId);
  expect(await linked()).toEqual([true, true]);
  const found: unknown[] = [];
  for (let cursor = ''; ; ) {
    const page = await get(`/identities/merges?limit=3${cursor}`, 'd');
    found.push(...page.results);
    if (page.nextCursor === null) break;
    cursor = `&cursor=${page.nextCursor}`;
  }
  expect(found).toEqual(all);
});

describe('two accounts of one person', () => {
  const workspace = 'e';
  const at = (minute: number, event: string, more: Partial<TestEvent>) =>
    anEvent({ timestampMs: START_MS + minute * 60_000, event, ...more });
  const events = [
    at(0, 'visited', { userId: 'old' }),
    at(1, 'visited', { anonymousId: 'phone' }),
    at(2, 'paid', { userId: 'jane' }),
    at(3, 'visited', { userId: 'joe' }),
  ];
  const RANGE = 'startDate=2026-03-01&endDate=2026-03-31&identity=linked';
  const read = async () => [
    await get(`/events?${RANGE}`, workspace),
    await get(`/events?${RANGE}&userId=old`, workspace),
    await get(`/events?${RANGE}&userId=jane&user.properties.plan=pro`, workspace),
    await get(`/events/series?${RANGE}&measure=users&interval=none`, workspace),
    await get(`/events/series?${RANGE}&groupBy=userId,user.properties.plan&interval=none`, workspace),
    await get(`/events/funnel?${RANGE}&steps=visited,paid`, workspace),
    await get(`/events/retention?${RANGE}&periods=1`, workspace),
    await get(`/events/names?${RANGE}&userId=old`, workspace),
    await get('/identities?userId=jane', workspace),
    await get('/users/old', workspace),
  ];
  let before: Awaited<ReturnType<typeof read>>;

  beforeAll(async () => {
    await query.store(workspace, events);
    const link = { workspace_id: workspace, anonymous_id: 'phone', user_id: 'old', version: VERSION, said: 0 };
    await query.insert('identity_links', [link]);
    for (const [id, plan] of [
      ['old', '"free"'],
      ['jane', '"pro"'],
    ] as const) {
      const user = { workspace_id: workspace, kind: 'user', id };
      const seen = { first_seen_at: START_MS, last_seen_at: START_MS + 120_000, version: 5 };
      await query.insert('entities', [{ ...user, ...seen }]);
      await query.insert('entity_properties', [{ ...user, property: 'plan', register: aRegister(5, 'set', plan) }]);
    }
    before = await read();
    await say(workspace, 'old', 'jane', VERSION + 1);
    await until('the first merge of the workspace is seen', async () => {
      return (await get('/users/old', workspace))['mergedInto' as never] === 'jane';
    });
  });

  test('are one from then on, by the name of either, and the numbers of before come back with it', async () => {
    const merged = await read();
    const [all, ofOld, pro, users, groups, funnel, , names, visitors, old] = merged as unknown as readonly [
      ...{ readonly results: readonly Record<string, unknown>[] }[],
    ];
    expect(all?.results.map(({ linkedUserId }) => linkedUserId)).toEqual(['joe', 'jane', 'jane', 'jane']);
    expect(ofOld?.results.map(({ userId, linkedUserId }) => [userId, linkedUserId])).toEqual([
      ['jane', 'jane'],
      [null, 'jane'],
      ['old', 'jane'],
    ]);
    expect(pro?.results.length).toBe(3);
    expect(users).toMatchObject({ total: 2 });
    expect(groups).toMatchObject({
      series: [
        { group: ['jane', 'pro'], total: 3 },
        { group: ['joe', null], total: 1 },
      ],
    });
    expect(funnel).toMatchObject({ steps: [{ count: 2 }, { count: 1 }] });
    expect(names?.results.map(({ event, count }) => [event, count])).toEqual([
      ['visited', 2],
      ['paid', 1],
    ]);
    expect(visitors?.results).toMatchObject([{ anonymousId: 'phone', userId: 'old' }]);
    expect(old).toMatchObject({ foreignId: 'old', properties: { plan: 'free' }, mergedInto: 'jane' });
    await say(workspace, 'old', '', VERSION + 2);
    expect(await read()).toEqual(before);
    await say(workspace, 'old', 'jane', VERSION + 3);
    expect(await read()).toEqual(merged);
    // With more merges than statements name, each finds them by itself.
    const others = Array.from({ length: NAMED_MERGES_MAX }, (_, index) => ({
      ...{ workspace_id: workspace, anonymous_id: mergeKeyOf(`other ${index}`), user_id: `person ${index}` },
      ...{ version: VERSION, said: 1 },
    }));
    await query.insert('identity_links', others);
    expect(await read()).toEqual(merged);
  });

  test('are who they were in reads of what was sent', async () => {
    const raw = await get('/events?userId=old&identity=raw', workspace);
    expect(raw.results.map(({ uuid }) => uuid)).toEqual([events[0]?.uuid]);
  });
});

test('with a deleted person whoever became it is hidden at once, with their visitors and records', async () => {
  const workspace = 'g';
  const [deletion, later] = [VERSION + 10, VERSION + 20];
  await say(workspace, 'old', 'jane');
  await say(workspace, 'older', 'old');
  await say(workspace, 'joe', 'jane', later);
  const link = { workspace_id: workspace, user_id: 'older', version: VERSION, said: 0 };
  await query.insert('identity_links', [{ ...link, anonymous_id: 'phone' }]);
  const of = (who: Partial<TestEvent>, receivedAtUs = VERSION) => anEvent({ ...who, receivedAtUs });
  const shown = [of({ userId: 'joe' }), of({ userId: 'old' }, later), of({ anonymousId: 'phone' }, later)];
  const hidden = [of({ userId: 'jane' }), of({ userId: 'old' }), of({ userId: 'older' }), of({ anonymousId: 'phone' })];
  await query.store(workspace, [...shown, ...hidden]);
  for (const id of ['older', 'joe']) {
    const seen = { first_seen_at: START_MS, last_seen_at: START_MS, version: VERSION };
    await query.insert('entities', [{ workspace_id: workspace, kind: 'user', id, ...seen }]);
  }
  const uuids = async (parameters: string) =>
    (await get(`/events?${parameters}`, workspace)).results.map(({ uuid }) => uuid).toSorted();
  expect((await uuids('')).length).toBe(7);
  const row = { workspace_id: workspace, user_id: 'jane', version: deletion };
  await query.insert('user_deletions', [row]);
  await query.insert('pending_deletions', [{ ...row, stored_at: 1 }]);
  await until('the deletion is in force', async () => (await uuids('')).length < 7);
  const expected = shown.map(({ uuid }) => uuid).toSorted();
  expect(await uuids('')).toEqual(expected);
  expect(await uuids('identity=linked')).toEqual(expected);
  expect((await query.get('/users/older', workspace)).status).toBe(404);
  expect((await get('/users', workspace)).results.map(({ foreignId }) => foreignId)).toEqual(['joe']);
});

test('of a person with more accounts than a statement can name nothing is shown, rather than something deleted', async () => {
  const workspace = 'h';
  const names = Array.from({ length: 700 }, (_, index) => `${'x'.repeat(200)}${index}`);
  const said = { workspace_id: workspace, user_id: 'jane', version: VERSION };
  await query.insert(
    'identity_links',
    names.map((name) => ({ ...said, anonymous_id: mergeKeyOf(name), said: 1 })),
  );
  await query.store(workspace, [anEvent({ userId: names[0] as string, receivedAtUs: VERSION })]);
  await query.insert('pending_deletions', [{ ...said, version: VERSION + 10, stored_at: 1 }]);
  await until('the deletion is in force', async () => (await query.get('/events', workspace)).status === 503);
});

test('a visitor that is named as a merged user is nobody’s', async () => {
  const workspace = 'f';
  await say(workspace, 'old', 'jane');
  const link = {
    workspace_id: workspace,
    anonymous_id: mergeKeyOf('victim'),
    user_id: 'thief',
    version: VERSION,
    said: 0,
  };
  await query.insert('identity_links', [link]);
  await query.store(workspace, [
    anEvent({ anonymousId: mergeKeyOf('old') }),
    anEvent({ anonymousId: mergeKeyOf('victim') }),
    anEvent({ userId: 'victim' }),
  ]);
  const page = await get('/events?identity=linked', workspace);
  expect(page.results.map(({ userId, linkedUserId }) => `${userId} ${linkedUserId}`).toSorted()).toEqual([
    'null null',
    'null null',
    'victim victim',
  ]);
  expect((await get('/identities?userId=jane', workspace)).results).toEqual([]);
  expect((await get('/identities/conflicts', workspace)).results).toEqual([]);
});
