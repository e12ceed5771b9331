import { setTimeout as wait } from 'node:timers/promises';
import { afterAll, beforeAll, beforeEach, expect, inject, test } from 'vitest';
import type { Sql } from '../clickhouse/sql.ts';
import { storeMany } from '../testing/load.ts';
import { anEvent, type QueryService, startQuery } from '../testing/query-service.ts';
import { parseEventsRequest } from './events-parameters.ts';
import { countQuery, pageQuery } from './events-query.ts';
import { createHiddenCondition } from './pending-deletions.ts';

let query: QueryService;

const deletedAtUs = Date.UTC(2026, 2, 1, 12) * 1_000 + 500;
const before = anEvent({ userId: 'ada', receivedAtUs: deletedAtUs - 1 });
const atOnce = anEvent({ userId: 'ada', receivedAtUs: deletedAtUs });
const future = anEvent({ userId: 'ada', receivedAtUs: deletedAtUs - 2, timestampMs: Date.UTC(2026, 2, 2) });
const after = anEvent({ userId: 'ada', receivedAtUs: deletedAtUs + 1, timestampMs: Date.UTC(2020, 0, 1) });
const others = [anEvent({ userId: 'bob' }), anEvent({ groupId: 'ada' }), anEvent({ anonymousId: 'ada' })];

/** Longer than the service reuses its look-up of pending deletions. */
const FORGOTTEN_MS = 350;

beforeAll(async () => {
  query = await startQuery(inject('clickhouseUrl'));
});
afterAll(() => query.stop());

beforeEach(async () => {
  for (const table of ['events', 'entities', 'user_deletions', 'user_sightings']) {
    await query.clickHouse.command({ query: `TRUNCATE TABLE ${table}` });
  }
  await query.store('a', [before, atOnce, future, after, ...others]);
  await wait(FORGOTTEN_MS);
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

async function deleteAda(versionUs = deletedAtUs, erasedUs = 0): Promise<void> {
  await query.insert('user_deletions', [
    { workspace_id: 'a', user_id: 'ada', version: versionUs, stored_at: 1, erased_version: erasedUs },
  ]);
}

test('a deletion hides within a second every event that was accepted before it, whatever its timestamp', async () => {
  expect(await uuids('')).toHaveLength(7);
  await deleteAda();
  await wait(FORGOTTEN_MS);
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
  await query.insert('user_deletions', [
    { workspace_id: 'a', user_id: 'bob', version: bob - 1, stored_at: 1, erased_version: 0 },
    { workspace_id: 'a', user_id: 'nobody', version: 9e15, stored_at: 1, erased_version: 0 },
  ]);
  await wait(FORGOTTEN_MS);
  expect(await uuids('')).toEqual(idsOf([after, ...others]));
});

test('pages by cursor leave no gap where events are hidden', async () => {
  await deleteAda();
  await wait(FORGOTTEN_MS);
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
  const hidden = await createHiddenCondition({ all: async () => [[1]] })('a');
  const newest = parseEventsRequest({}, 'a');
  expect(await rowsRead(countQuery(newest, hidden))).toBeLessThan(rows / 10);
  expect(await rowsRead(pageQuery(newest, hidden))).toBeLessThan(rows / 10);
  // Every user has events, and none of these is hidden.
  const users = Array.from({ length: 1_000 }, (_, user) => ({ user_id: String(user), version: deletedAtUs }));
  await query.insert(
    'user_deletions',
    users.map((deletion) => ({ workspace_id: 'a', ...deletion, stored_at: 1, erased_version: 0 })),
  );
  expect(await rowsRead(pageQuery(newest, hidden))).toBeLessThan(rows / 10);
  await wait(FORGOTTEN_MS);
  const { body } = await query.get('/events?limit=1');
  expect(body.total).toBe(rows + [after, ...others].length);
});

test('an erased deletion adds nothing to a query', async () => {
  await deleteAda(deletedAtUs, deletedAtUs);
  await wait(FORGOTTEN_MS);
  // An erased event is no longer stored. Here it is, which shows that no query looks for it.
  expect(await uuids('')).toHaveLength(7);
});
