import { setTimeout as wait } from 'node:timers/promises';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { ask, comparable, OWNER_TABLES, type OwnersWorld, ownerQuestions, ownersWorld } from '../../testing/owners.ts';
import {
  anEvent,
  aRegister,
  DELETIONS_FORGOTTEN_MS,
  type QueryService,
  startQuery,
} from '../../testing/query-service.ts';

let query: QueryService;
let world: OwnersWorld;

beforeAll(async () => {
  query = await startQuery(inject('clickhouseUrl'));
  world = ownersWorld(60);
  await query.store('a', world.events);
  await query.store('b', world.reference);
  for (const table of OWNER_TABLES) {
    const rows = world.rows.filter((row) => row.table === table).map(({ row }) => ({ workspace_id: 'a', ...row }));
    // Several parts, which are not merged: registers are folded when they are read.
    await query.insert(table, rows.slice(0, rows.length / 2));
    await query.insert(table, rows.slice(rows.length / 2));
  }
  await wait(DELETIONS_FORGOTTEN_MS);
});
afterAll(() => query.stop());

test('random questions about users and organizations are answered as those about events that hold all of it', async () => {
  for (const { asked, expected } of ownerQuestions(60)) {
    const [answer, reference] = await Promise.all([ask(query, asked, 'a'), ask(query, expected, 'b')]);
    expect(answer.status, `${asked} ${answer.text}`).toBe(200);
    expect(comparable(answer), asked).toEqual(comparable(reference));
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
