import { setTimeout as wait } from 'node:timers/promises';
import { WEBHOOKS_ACCOUNT } from '@sluice/shared/clickhouse/testing/test-accounts';
import { afterAll, beforeAll, expect, inject, onTestFinished, test } from 'vitest';
import { outOfTime } from '../../testing/load.ts';
import {
  ask,
  comparable,
  OWNER_TABLES,
  type OwnersWorld,
  ownerQuestions,
  ownersWorld,
  putSegments,
} from '../../testing/owners.ts';
import {
  anEvent,
  aRegister,
  DELETIONS_FORGOTTEN_MS,
  type QueryService,
  startQuery,
} from '../../testing/query-service.ts';
import { expectEvents, listenTo } from '../../testing/streams.ts';

let query: QueryService;
let world: OwnersWorld;

beforeAll(async () => {
  query = await startQuery(inject('clickhouseUrl'), WEBHOOKS_ACCOUNT);
  world = ownersWorld(60);
  await query.store('a', world.events);
  await query.store('b', world.reference);
  for (const table of OWNER_TABLES) {
    const rows = world.rows.filter((row) => row.table === table).map(({ row }) => ({ workspace_id: 'a', ...row }));
    // Several parts, which are not merged: registers are folded when they are read.
    await query.insert(table, rows.slice(0, rows.length / 2));
    await query.insert(table, rows.slice(rows.length / 2));
  }
  await putSegments(query, 'a');
  await wait(DELETIONS_FORGOTTEN_MS);
});
afterAll(() => query.stop());

test('random questions about users and organizations are answered as those about events that hold all of it', async () => {
  // From then on pages are read in windows.
  for (const workspace of ['a', 'b']) await query.get('/events', workspace);
  for (const { asked, expected } of ownerQuestions(8)) {
    const [answer, reference] = await Promise.all([ask(query, asked, 'a'), ask(query, expected, 'b')]);
    expect(answer.status, `${asked} ${answer.text}`).toBe(200);
    expect(comparable(answer), asked).toEqual(comparable(reference));
  }
});

test('the list of those in a segment has all of them, and as many as it says', async () => {
  for (const [name, members] of Object.entries(world.members)) {
    const { body } = await query.get(`/segments/${name}`);
    const { of, count } = body as unknown as { of: 'users' | 'organizations'; count: number };
    const { results } = (await query.get(`/${of}?segment=${name}`)).body;
    const listed = results.map((one) => one[of === 'users' ? 'foreignId' : 'foreignUserGroupId']);
    expect([name, count, listed]).toEqual([name, members.length, members]);
  }
});

test('a change of a property shows in the next read, and an owner is never one of another kind or workspace', async () => {
  const set = async (workspace: string, kind: string, version: number, value: string) => {
    const register = aRegister(version, 'set', value);
    await query.insert('entity_properties', [{ workspace_id: workspace, kind, id: 'x', property: 'plan', register }]);
  };
  const total = async () => {
    const { body } = await query.get('/events?limit=0&organization.properties.plan=pro', 'c');
    return body.total;
  };
  await query.store('c', [anEvent({ userId: 'x', groupId: 'x' }), anEvent({ userId: 'x' })]);
  await set('c', 'user', 1, '"pro"');
  await set('d', 'organization', 1, '"pro"');
  expect(await total()).toBe(0);
  await set('c', 'organization', 2, '"pro"');
  expect(await total()).toBe(1);
  await set('c', 'organization', 3, '"free"');
  expect(await total()).toBe(0);
});

test('more owners than the index names are found as well', async () => {
  const count = 3_000;
  const rows = Array.from({ length: count }, (_, index) => ({
    ...{ workspace_id: 'e', kind: 'user', id: String(index), property: 'plan' },
    register: aRegister(1, 'set', index % 2 === 0 ? '"pro"' : '"free"'),
  }));
  await query.insert('entity_properties', rows);
  await query.store(
    'e',
    rows.map(({ id }) => anEvent({ userId: id })),
  );
  const { body } = await query.get('/events?limit=0&user.properties.plan=pro', 'e');
  expect(body.total).toBe(count / 2);
  const values = await query.get('/events/values?property=user.properties.plan', 'e');
  // A sample ends with a thousand users.
  expect(values.body).toMatchObject({ sampledEvents: 1_000 });
  // From then on pages are read in windows, and the owners of their events alone.
  await query.get('/events', 'e');
  for (const [filter, remainder] of [
    ['user.properties.plan=pro', 0],
    ['user.properties.plan[ne]=pro', 1],
  ] as const) {
    const page = await query.get(`/events?limit=1000&total=none&${filter}`, 'e');
    expect(page.body.results.map(({ userId }) => Number(userId) % 2)).toEqual(
      Array.from({ length: 1_000 }, () => remainder),
    );
    const next = await query.get(`/events?limit=1000&total=none&${filter}&cursor=${page.body.nextCursor}`, 'e');
    expect(next.body.results).toHaveLength(500);
  }
});

test('owners whose identifiers are too long to be named together are found as well, and so is that there are none', async () => {
  const ids = Array.from({ length: 400 }, (_, index) => `${'x'.repeat(500)}${index}`);
  const register = aRegister(1, 'set', '"pro"');
  await query.insert(
    'entity_properties',
    ids.map((id) => ({ workspace_id: 'h', kind: 'user', id, property: 'plan', register })),
  );
  await query.store(
    'h',
    ids.slice(0, 5).map((userId) => anEvent({ userId })),
  );
  // A page with an offset looks through no events.
  const listed = async (value: string) => {
    const { status, body } = await query.get(`/events?offset=1&total=none&user.properties.plan=${value}`, 'h');
    return [status, body.results.length];
  };
  expect(await listed('pro')).toEqual([200, 4]);
  expect(await listed('free')).toEqual([200, 0]);
});

test.each([
  ['group.properties.plan=pro', 'unknown_parameter', 'group.properties.plan'],
  ['user.plan=pro', 'unknown_parameter', 'user.plan'],
  ['user.firstSeenAt=2026-03-01', 'unknown_operator', 'use one of lt, lte, gt, gte'],
  ['organization.lastSeenAt[gte]=yesterday', 'custom', 'ISO 8601'],
  ['user.properties.plan[is]=pro', 'unknown_operator', 'user.properties.plan[is]'],
  ['user.properties.a.b.c.d.e.f.g.h=1', 'custom', 'at most 6 dots'],
  [
    Array.from({ length: 21 }, (_, index) => `${index % 2 ? 'user' : 'organization'}.properties.n${index}=1`).join('&'),
    'too_many',
    'at most 20 filters',
  ],
])('bad input is refused and named: %s', async (parameters, code, said) => {
  const { status, body, text } = await query.get(`/events?${parameters}`);
  expect([status, body.errors.map((error) => error.code)]).toEqual([400, [code]]);
  expect(text).toContain(said);
});

test('as many filters as there may be are answered together', async () => {
  const filters = Array.from(
    { length: 20 },
    (_, index) => `${index % 2 ? 'user' : 'organization'}.properties.a.b${index}[ne]=${'x'.repeat(50)}`,
  );
  const { status, text } = await query.get(`/events?limit=10&${filters.join('&')}`, 'c');
  expect(status, text).toBe(200);
});

test('a user who came back was seen first since the deletion, whether or not its erasure has put that right', async () => {
  const [deletedUs, janMs, marchMs] = [Date.UTC(2026, 1, 15) * 1_000, Date.UTC(2026, 0, 1), Date.UTC(2026, 2, 1)];
  for (const user_id of ['sure', 'mixed']) {
    await query.insert('user_deletions', [{ workspace_id: 'f', user_id, version: deletedUs }]);
    await query.insert('pending_deletions', [{ workspace_id: 'f', user_id, version: deletedUs, stored_at: 1 }]);
  }
  const row = (id: string, other_id: string, firstMs: number, version: number) => ({
    ...{ workspace_id: 'f', kind: 'user', id, other_id, first_seen_at: firstMs, last_seen_at: marchMs, version },
  });
  await query.insert('entities', [
    row('sure', '', janMs, deletedUs - 1),
    row('sure', String(deletedUs), marchMs, deletedUs + 1),
    row('mixed', '', janMs, deletedUs + 1),
  ]);
  const at = (userId: string) => anEvent({ userId, timestampMs: marchMs, receivedAtUs: deletedUs + 1 });
  await query.store('f', [at('sure'), at('mixed')]);
  await wait(DELETIONS_FORGOTTEN_MS);
  const total = async (filter: string) => (await query.get(`/events?limit=0&${filter}`, 'f')).body.total;
  expect(await total('user.firstSeenAt[lt]=2026-03-01')).toBe(0);
  expect(await total('user.firstSeenAt[gte]=2026-03-01')).toBe(2);
});

test('where a name means several properties, groups are those of the longest', async () => {
  const property = (name: string, value: string) => ({
    ...{ workspace_id: 'g', kind: 'user', id: 'x', property: name, register: aRegister(1, 'set', value) },
  });
  await query.insert('entity_properties', [property('a', '{"b":"inside"}'), property('a.b', '"whole"')]);
  await query.store('g', [anEvent({ userId: 'x' })]);
  const { body } = await query.get('/events/series?startDate=2026-03-01&groupBy=user.properties.a.b', 'g');
  expect(body).toMatchObject({ series: [{ group: ['whole'], total: 1 }] });
});

test('where ClickHouse is too slow for a question about users, nothing half is an answer, and streams wait for theirs', async () => {
  let isTooSlow = true;
  const slow = await startQuery(inject('clickhouseUrl'), { STREAM_INTERVAL_MS: '50' }, (reader) =>
    outOfTime(reader, ({ params }) => isTooSlow && JSON.stringify(params).includes('pro')),
  );
  const streams = await listenTo(slow);
  onTestFinished(async () => {
    await streams.closeAll();
    await slow.stop();
  });
  const register = aRegister(1, 'set', '"pro"');
  const deletedUs = Date.UTC(2026, 2, 1) * 1_000;
  for (const id of ['gone', 'here']) {
    await slow.insert('entity_properties', [{ workspace_id: 'a', kind: 'user', id, property: 'plan', register }]);
  }
  const deletion = { workspace_id: 'a', user_id: 'gone', version: deletedUs };
  await slow.insert('user_deletions', [deletion]);
  await slow.insert('pending_deletions', [{ ...deletion, stored_at: 1 }]);
  await wait(DELETIONS_FORGOTTEN_MS);
  const filter = 'user.properties.plan=pro';
  const stream = await streams.open(`?${filter}`);
  const shown = anEvent({ userId: 'here', receivedAtUs: deletedUs + 1 });
  await slow.store('a', [anEvent({ userId: 'gone', receivedAtUs: deletedUs - 1 }), shown]);
  const page = `/events?total=exact&${filter}`;
  const series = `/events/series?interval=day&startDate=2026-03-01&endDate=2026-03-01&${filter}`;
  const late = await slow.get(page);
  expect([late.status, late.body.code]).toEqual([400, 'query_too_expensive']);
  expect(await slow.get(series)).toMatchObject({ status: 200, body: { complete: false } });
  expect(stream.events).toEqual([]);
  isTooSlow = false;
  expect(await slow.get(page)).toMatchObject({ status: 200, body: { total: 1, results: [{ userId: 'here' }] } });
  expect(await slow.get(series)).toMatchObject({ body: { complete: true, series: [{ total: 1 }] } });
  await expectEvents(stream, [shown]);
  expect(stream.problems).toEqual([]);
});
