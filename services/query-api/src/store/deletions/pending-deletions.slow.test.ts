import { setTimeout as wait } from 'node:timers/promises';
import { visitorOf } from '@sluice/shared/rows/deleted-person';
import { eventually } from '@sluice/shared/testing/eventually';
import { afterAll, beforeAll, beforeEach, expect, inject, test } from 'vitest';
import { parseEventsRequest } from '../../records/events/events-parameters.ts';
import { countQuery, pageQuery } from '../../records/events/events-query.ts';
import { storeMany } from '../../testing/load.ts';
import { anEvent, DELETIONS_FORGOTTEN_MS, type QueryService, startQuery } from '../../testing/query-service.ts';
import type { Sql } from '../sql.ts';
import { LOCAL_TABLES } from '../tables.ts';
import { PendingDeletions } from './pending-deletions.ts';

let query: QueryService;

const deletedAtUs = Date.UTC(2026, 2, 1, 12) * 1_000 + 500;
const before = anEvent({ userId: 'ada', receivedAtUs: deletedAtUs - 1 });
const atOnce = anEvent({ userId: 'ada', receivedAtUs: deletedAtUs });
const future = anEvent({ userId: 'ada', receivedAtUs: deletedAtUs - 2, timestampMs: Date.UTC(2026, 2, 2) });
const after = anEvent({ userId: 'ada', receivedAtUs: deletedAtUs + 1, timestampMs: Date.UTC(2020, 0, 1) });
const others = [anEvent({ userId: 'bob' }), anEvent({ groupId: 'ada' }), anEvent({ anonymousId: 'ada' })];

beforeAll(async () => {
  query = await startQuery(inject('clickhouseUrl'));
});
afterAll(() => query.stop());

beforeEach(async () => {
  for (const table of ['events', 'entities', 'user_deletions', 'pending_deletions', 'user_sightings']) {
    await query.clickHouse.command({ query: `TRUNCATE TABLE ${table}` });
  }
  await query.store('a', [before, atOnce, future, after, ...others]);
  await wait(DELETIONS_FORGOTTEN_MS);
});

async function uuids(parameters: string): Promise<unknown[]> {
  const { status, body } = await query.get(`/events?${parameters}`);
  expect(status).toBe(200);
  expect(body.total).toBe(body.results.length);
  return body.results.map(({ uuid }) => uuid).sort();
}

function idsOf(events: readonly { readonly uuid: string }[]): string[] {
  return events.map(({ uuid }) => uuid).sort();
}

async function deleteAda(versionUs = deletedAtUs): Promise<void> {
  await query.insert('pending_deletions', [{ workspace_id: 'a', user_id: 'ada', version: versionUs, stored_at: 1 }]);
}

test('a deletion hides within a second every event that was accepted before it, whatever its timestamp', async () => {
  expect(await uuids('')).toHaveLength(7);
  await deleteAda();
  await wait(DELETIONS_FORGOTTEN_MS);
  expect(await uuids('')).toEqual(idsOf([after, ...others]));
  expect(await uuids('userId=ada')).toEqual([after.uuid]);
  expect(await uuids('groupId=ada')).toHaveLength(1);
  expect(await uuids(`uuid=${before.uuid}`)).toEqual([]);
  expect(await uuids('orderByField=userId&orderByDirection=ASC&limit=1000')).toEqual(idsOf([after, ...others]));
});

test('several deletions of several users each hide the events of their user', async () => {
  const bob = others[0]?.receivedAtUs ?? 0;
  await deleteAda(deletedAtUs - 1);
  await deleteAda(deletedAtUs);
  await query.insert('pending_deletions', [
    { workspace_id: 'a', user_id: 'bob', version: bob - 1, stored_at: 1 },
    { workspace_id: 'a', user_id: 'nobody', version: 9e15, stored_at: 1 },
  ]);
  await wait(DELETIONS_FORGOTTEN_MS);
  expect(await uuids('')).toEqual(idsOf([after, ...others]));
});

test('a deletion of a visitor hides its events without a user, in lists, totals, counts and exports', async () => {
  const ofUser = anEvent({ anonymousId: 'ada', userId: 'bob' });
  const later = anEvent({ anonymousId: 'ada', receivedAtUs: deletedAtUs + 1 });
  await query.store('a', [ofUser, later]);
  const row = { workspace_id: 'a', user_id: visitorOf('ada'), version: deletedAtUs, stored_at: 1 };
  await query.insert('pending_deletions', [row]);
  await wait(DELETIONS_FORGOTTEN_MS);
  const [bob, ofGroup] = others;
  const shown = [before, atOnce, future, after, bob, ofGroup, ofUser, later].filter((event) => event !== undefined);
  expect(await uuids('')).toEqual(idsOf(shown));
  expect(await uuids('anonymousId=ada')).toEqual(idsOf([ofUser, later]));
  const [name] = (await query.get('/events/names?startDate=2020-01-01')).body.results;
  expect(name).toMatchObject({ event: 'e', count: shown.length });
  const request = { url: '/events/export?startDate=2020-01-01', headers: { authorization: 'Bearer a' } };
  const { body: text } = await query.app.inject(request);
  expect(text).toContain(`{"complete":true,"events":${shown.length}}`);
  // With deletions of users beside it.
  await deleteAda();
  await wait(DELETIONS_FORGOTTEN_MS);
  const left = [after, bob, ofGroup, ofUser, later].filter((event) => event !== undefined);
  expect(await uuids('')).toEqual(idsOf(left));
});

test('pages by cursor leave no gap where events are hidden', async () => {
  await deleteAda();
  await wait(DELETIONS_FORGOTTEN_MS);
  const found: unknown[] = [];
  let cursor = '';
  do {
    const { body } = await query.get(`/events?limit=1${cursor}`);
    expect(body.total).toBe(4);
    found.push(...body.results.map(({ uuid }) => uuid));
    cursor = body.nextCursor === null ? '' : `&cursor=${body.nextCursor}`;
  } while (cursor !== '');
  expect(found.sort()).toEqual(idsOf([after, ...others]));
});

/** How many rows of all tables ClickHouse reads. */
async function rowsRead({ sql, params }: Sql): Promise<number | undefined> {
  const query_params = { ...params, workspace: 'a' };
  const result = await query.clickHouse.query({ query: sql, query_params, format: 'JSON' });
  return (await result.json<unknown>()).statistics?.rows_read;
}

test('while deletions are pending, a page and a total read few rows', async () => {
  const rows = 200_000;
  await storeMany(query, 'a', rows);
  await deleteAda();
  const visitor = { workspace_id: 'a', user_id: visitorOf('nobody'), version: deletedAtUs, stored_at: 1 };
  await query.insert('pending_deletions', [visitor]);
  const hidden = (await new PendingDeletions({ all: async () => [['a']] }).hiddenCondition('a'))?.(LOCAL_TABLES);
  const newest = parseEventsRequest({}, 'a');
  expect(await rowsRead(countQuery(LOCAL_TABLES, newest, hidden))).toBeLessThan(rows / 10);
  expect(await rowsRead(pageQuery(LOCAL_TABLES, newest, hidden))).toBeLessThan(rows / 10);
  // Every user has events, and none of these is hidden.
  const users = Array.from({ length: 1_000 }, (_, user) => ({ user_id: String(user), version: deletedAtUs }));
  await query.insert(
    'pending_deletions',
    users.map((deletion) => ({ workspace_id: 'a', ...deletion, stored_at: 1 })),
  );
  expect(await rowsRead(pageQuery(LOCAL_TABLES, newest, hidden))).toBeLessThan(rows / 10);
  await wait(DELETIONS_FORGOTTEN_MS);
  const { body } = await query.get('/events?limit=1');
  expect(body.total).toBe(rows + [after, ...others].length);
});

test('past deletions add nothing to a page or a total, however many there were', async () => {
  await storeMany(query, 'a', 10_000);
  const readAll = async () => {
    const condition = await new PendingDeletions({ all: async () => await pendingWorkspaces() }).hiddenCondition('a');
    const hidden = condition?.(LOCAL_TABLES);
    const newest = parseEventsRequest({}, 'a');
    return {
      condition,
      rows: [
        await rowsRead(pageQuery(LOCAL_TABLES, newest, hidden)),
        await rowsRead(countQuery(LOCAL_TABLES, newest, hidden)),
      ],
    };
  };
  await pastDeletions(0, 10_000);
  const few = await readAll();
  await pastDeletions(10_000, 80_000);
  const many = await readAll();
  expect(few.condition).toBeUndefined();
  expect(many).toEqual(few);
  await wait(DELETIONS_FORGOTTEN_MS);
  // A past deletion of ada: an erased event is no longer stored. Here it is, which shows that no query looks for it.
  await query.insert('user_deletions', [{ workspace_id: 'a', user_id: 'ada', version: deletedAtUs }]);
  await wait(DELETIONS_FORGOTTEN_MS);
  expect((await query.get('/events?userId=ada')).body.total).toBe(4);
});

async function pastDeletions(from: number, to: number): Promise<void> {
  await query.clickHouse.command({
    query: `INSERT INTO user_deletions SELECT 'a', concat('past ', toString(number)), 1
      FROM numbers({from:UInt64}, {count:UInt64})`,
    query_params: { from, count: to - from },
  });
}

async function pendingWorkspaces(): Promise<[string][]> {
  const result = await query.clickHouse.query({
    query: 'SELECT DISTINCT workspace_id FROM pending_deletions',
    format: 'JSONCompactEachRow',
  });
  return await result.json<[string]>();
}

/** A query runner whose polls end when the test says so. */
function controlledRunner() {
  const polls: PromiseWithResolvers<[string][]>[] = [];
  const all = () => {
    const poll = Promise.withResolvers<[string][]>();
    polls.push(poll);
    return poll.promise;
  };
  return { polls, runner: { all } };
}

test('requests wait for one poll together, and a fresh one costs them nothing', async () => {
  const { polls, runner } = controlledRunner();
  let now = 1_000;
  const pending = new PendingDeletions(runner, () => now);
  const requests = [...'aaab'].map((workspace) => pending.hiddenCondition(workspace));
  expect(polls).toHaveLength(1);
  polls[0]?.resolve([['a']]);
  const hidden = await Promise.all(requests);
  expect(hidden.map((condition) => condition !== undefined)).toEqual([true, true, true, false]);
  now += 500;
  expect(await pending.hiddenCondition('b')).toBeUndefined();
  expect(polls).toHaveLength(1);
  now += 1;
  const late = pending.hiddenCondition('b');
  expect(polls).toHaveLength(2);
  polls[1]?.resolve([['b']]);
  expect(await late).toBeDefined();
});

test('a request uses no poll that began too long ago, and fails when what is deleted is not known', async () => {
  const { polls, runner } = controlledRunner();
  let now = 0;
  const pending = new PendingDeletions(runner, () => now);
  const request = pending.hiddenCondition('a');
  now = 501;
  polls[0]?.resolve([]);
  await eventually(() => polls).toHaveLength(2);
  const failure = new Error('unavailable');
  polls[1]?.reject(failure);
  await expect(request).rejects.toBe(failure);
  const next = pending.hiddenCondition('a');
  polls[2]?.resolve([['a']]);
  expect(await next).toBeDefined();
});

test('the background polls once at a time while ClickHouse hangs, and not without requests', async () => {
  const { polls, runner } = controlledRunner();
  let now = 0;
  const pending = new PendingDeletions(runner, () => now);
  pending.start();
  await wait(450);
  expect(polls).toHaveLength(0);
  const request = pending.hiddenCondition('a');
  await wait(450);
  expect(polls).toHaveLength(1);
  polls[0]?.resolve([]);
  await request;
  await eventually(() => polls).toHaveLength(2);
  polls[1]?.resolve([]);
  now = 10_001;
  await wait(450);
  expect(polls.length).toBeLessThanOrEqual(3);
  polls[2]?.resolve([]);
  await pending.stop();
});

test('while the visitors of deleted users are slow to find, reads wait for one look together, and a failed one is tried again', async () => {
  const { polls: looks, runner } = controlledRunner();
  let now = 0;
  const all = async ({ kind }: { readonly kind: string }) =>
    kind === 'pending_deletions' ? [['a']] : await runner.all();
  const pending = new PendingDeletions(
    { all },
    () => now,
    async () => ({ areLinked: true, areMerged: false }),
  );
  const early = [1, 2, 3].map(() => pending.hiddenCondition('a'));
  await eventually(() => looks).toHaveLength(1);
  now = 2_000;
  const late = pending.hiddenCondition('a');
  await wait(50);
  expect(looks).toHaveLength(1);
  // It began too long ago.
  looks[0]?.resolve([]);
  await eventually(() => looks).toHaveLength(2);
  looks[1]?.resolve([['\uffffvisitor', 5]] as unknown as [string][]);
  for (const request of [...early, late]) {
    const params = (await request)?.(LOCAL_TABLES).params;
    expect(params).toMatchObject({ workspace_deleted_users: ['\uffffvisitor'], workspace_deleted_versions: [5] });
  }
  now = 3_000;
  const failing = pending.hiddenCondition('a');
  await eventually(() => looks).toHaveLength(3);
  const failure = new Error('unavailable');
  looks[2]?.reject(failure);
  await expect(failing).rejects.toBe(failure);
  const next = pending.hiddenCondition('a');
  await eventually(() => looks).toHaveLength(4);
  looks[3]?.resolve([]);
  expect(await next).toBeDefined();
});

test('with more workspaces than a process remembers, every one looks up its deletions', async () => {
  const names = (count: number) => Array.from({ length: count }, (_, index) => [`workspace ${index}`]);
  const known = new PendingDeletions({ all: async () => names(10_000) });
  expect(await known.hiddenCondition('another')).toBeUndefined();
  const unknown = new PendingDeletions({ all: async () => names(10_001) });
  expect(await unknown.hiddenCondition('another')).toBeDefined();
});
