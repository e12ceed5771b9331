import { mergeParts } from '@sluice/shared/clickhouse/testing/merge-parts';
import fc from '@sluice/shared/testing/fast-check';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { anEvent, eventRow, type QueryService, startQuery } from '../../testing/query-service.ts';

let query: QueryService;

beforeAll(async () => {
  query = await startQuery(inject('clickhouseUrl'));
});
afterAll(() => query.stop());

const identifier = fc.constantFrom<string>('ada', 'bob', 'Ådа', '\u{1f600}', 'a/b?c#d%', ' ', "'\\", '\0');

/** An event of a user in an organization, a submission without events that names both, or the deletion of the user. */
const change = fc.record({
  user: identifier,
  organization: identifier,
  deleted: fc.integer({ min: 0, max: 5 }).map((die) => die === 0),
  eventless: fc.boolean(),
  day: fc.integer({ min: 0, max: 9 }),
});
type Change = typeof change extends fc.Arbitrary<infer One> ? One : never;

const START_MS = Date.UTC(2026, 2, 1);
const versionUs = (index: number) => (START_MS + index * 3) * 1_000 + 7;
const timeOf = ({ day, eventless }: Change, index: number) => START_MS + (eventless ? index * 3 : day * 86_400_000);

const TABLES = ['events', 'entities', 'user_deletions', 'user_sightings'];

interface StoredRow {
  readonly table: string;
  readonly row: Record<string, unknown>;
}

/** The rows that the writer stores for a change. */
function rowsOf(one: Change, index: number): StoredRow[] {
  const version = versionUs(index);
  const ofUser = { workspace_id: 'a', user_id: one.user, version };
  if (one.deleted) return [{ table: 'user_deletions', row: ofUser }];
  const timestampMs = timeOf(one, index);
  const seen = { workspace_id: 'a', first_seen_at: timestampMs, last_seen_at: timestampMs, version };
  const event = { userId: one.user, groupId: one.organization, timestampMs, receivedAtUs: version };
  return [
    { table: 'entities', row: { ...seen, kind: 'user', id: one.user } },
    { table: 'entities', row: { ...seen, kind: 'organization', id: one.organization } },
    { table: 'entities', row: { ...seen, kind: 'membership', id: one.user, other_id: one.organization } },
    { table: 'entities', row: { ...seen, kind: 'member', id: one.organization, other_id: one.user } },
    one.eventless
      ? { table: 'user_sightings', row: { ...ofUser, group_id: one.organization } }
      : { table: 'events', row: eventRow('a', anEvent(event)) },
  ];
}

/** Stores what the writer stores, in two batches. */
async function store(changes: readonly Change[], { eventsStored = true } = {}): Promise<void> {
  await Promise.all(TABLES.map((table) => query.clickHouse.command({ query: `TRUNCATE TABLE ${table}` })));
  const rows = changes.flatMap(rowsOf).filter(({ table }) => eventsStored || table !== 'events');
  for (const batch of [rows.slice(0, rows.length / 2), rows.slice(rows.length / 2)]) {
    for (const [table, found] of Map.groupBy(batch, (stored) => stored.table)) {
      await query.insert(
        table,
        found.map(({ row }) => row),
      );
    }
  }
}

interface Expected {
  readonly id: string;
  readonly firstSeenAt: string;
  readonly lastSeenAt: string;
}

const SIDES = [
  { side: 'user', other: 'organization', path: '/users', list: '/organizations', idName: 'foreignUserGroupId' },
  { side: 'organization', other: 'user', path: '/organizations', list: '/users', idName: 'foreignId' },
] as const;

/** The memberships of one user or organization in the plainest way: what came after the last deletion of the user. */
function fold(changes: readonly Change[], side: 'user' | 'organization', id: string): Expected[] {
  const live = changes
    .map((one, index) => ({ ...one, index, ms: timeOf(one, index) }))
    .filter(
      ({ user: id, deleted, index }) =>
        !deleted && !changes.slice(index + 1).some((later) => later.deleted && later.user === id),
    );
  const other = side === 'user' ? 'organization' : 'user';
  const byOther = Map.groupBy(
    live.filter((one) => one[side] === id),
    (one) => one[other],
  );
  return [...byOther]
    .map(([otherId, together]) => ({
      id: otherId,
      firstSeenAt: new Date(Math.min(...together.map(({ ms }) => ms))).toISOString(),
      lastSeenAt: new Date(Math.max(...together.map(({ ms }) => ms))).toISOString(),
    }))
    .sort((a, b) => Buffer.compare(Buffer.from(a.id), Buffer.from(b.id)));
}

/** Reads all pages. `undefined`: there is no such user or organization. */
async function readAll({ path, list, idName }: (typeof SIDES)[number], id: string, limit: number) {
  const found: unknown[] = [];
  for (let cursor = ''; ; ) {
    const { status, body } = await query.get(`${path}/${encodeURIComponent(id)}${list}?limit=${limit}${cursor}`);
    if (status === 404) return undefined;
    expect(status, JSON.stringify(body)).toBe(200);
    expect(body.results.length).toBeLessThanOrEqual(limit);
    found.push(...body.results.map(({ [idName]: otherId, ...rest }) => ({ id: otherId, ...rest })));
    if (body.nextCursor === null) return found;
    cursor = `&cursor=${body.nextCursor}`;
  }
}

test('memberships are what the submissions say that no deletion hides, from both sides and over all pages', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(change, { minLength: 1, maxLength: 15 }),
      fc.integer({ min: 1, max: 3 }),
      fc.boolean(),
      async (changes, limit, merged) => {
        await store(changes);
        if (merged) await mergeParts(query.clickHouse, 'entities');
        const { user, organization } = changes[0] as Change;
        for (const side of SIDES) {
          const id = side.side === 'user' ? user : organization;
          const isKnown =
            side.side === 'user'
              ? fold(changes, 'user', id).length > 0
              : changes.some((one) => !one.deleted && one.organization === id);
          const expected = isKnown ? fold(changes, side.side, id) : undefined;
          expect(await readAll(side, id, limit)).toEqual(expected);
        }
      },
    ),
    { numRuns: 12 },
  );
});

test('until the events of a user who came back are stored, their receipt stands in for their times', async () => {
  const one = { user: 'ada', organization: 'acme', deleted: false, eventless: false, day: 5 };
  await store([one, { ...one, deleted: true }, one], { eventsStored: false });
  const seen = new Date(Math.floor(versionUs(2) / 1_000)).toISOString();
  for (const side of SIDES) {
    const id = side.side === 'user' ? 'ada' : 'acme';
    const otherId = side.side === 'user' ? 'acme' : 'ada';
    expect(await readAll(side, id, 10)).toEqual([{ id: otherId, firstSeenAt: seen, lastSeenAt: seen }]);
  }
});

test('another workspace has no memberships, and a user without an organization has none', async () => {
  await store([{ user: 'ada', organization: 'acme', deleted: false, eventless: false, day: 1 }]);
  expect((await query.get('/users/ada/organizations', 'b')).status).toBe(404);
  const version = versionUs(1);
  const seen = { workspace_id: 'a', first_seen_at: START_MS, last_seen_at: START_MS, version };
  await query.insert('entities', [{ ...seen, kind: 'user', id: 'alone' }]);
  expect((await query.get('/users/alone/organizations')).body).toEqual({ limit: 100, results: [], nextCursor: null });
  expect((await query.get('/users/alone/organizations?limit=0')).body).toEqual({
    limit: 0,
    results: [],
    nextCursor: null,
  });
});

test('a cursor of another list, a filter and an unknown parameter are refused', async () => {
  const both = ['acme', 'bee'].map((organization) => ({
    user: 'ada',
    organization,
    deleted: false,
    eventless: false,
    day: 1,
  }));
  await store([...both, { user: 'bob', organization: 'acme', deleted: false, eventless: false, day: 1 }]);
  const { body } = await query.get('/users/ada/organizations?limit=1');
  expect(body.nextCursor).not.toBeNull();
  for (const [path, error] of [
    [`/users/bob/organizations?cursor=${body.nextCursor}`, 'cursor'],
    [`/organizations/ada/users?cursor=${body.nextCursor}`, 'cursor'],
    ['/users/ada/organizations?properties.plan=pro', 'properties.plan'],
    ['/users/ada/organizations?colour=red', 'colour'],
  ] as const) {
    const { status, body } = await query.get(path);
    expect(status, path).toBe(400);
    expect(body.errors.map(({ path }) => path)).toEqual([error]);
  }
});
