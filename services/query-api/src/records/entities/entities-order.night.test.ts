import { setTimeout as wait } from 'node:timers/promises';
import { mergeParts } from '@sluice/shared/clickhouse/testing/merge-parts';
import fc from '@sluice/shared/testing/fast-check';
import { afterAll, beforeAll, beforeEach, expect, inject, test } from 'vitest';
import {
  anEvent,
  aRegister,
  DELETIONS_FORGOTTEN_MS,
  type QueryService,
  startQuery,
} from '../../testing/query-service.ts';

let query: QueryService;

beforeAll(async () => {
  query = await startQuery(inject('clickhouseUrl'));
});
afterAll(() => query.stop());

const START_MS = Date.UTC(2026, 2, 1);
const TABLES = [
  ...['events', 'entities', 'entity_properties', 'user_deletions', 'pending_deletions', 'user_sightings'],
];

async function empty(): Promise<void> {
  await Promise.all(TABLES.map((table) => query.clickHouse.command({ query: `TRUNCATE TABLE ${table}` })));
}
beforeEach(empty);

/** An event of a user in an organization, or the deletion of the user. */
const change = fc.record({
  user: fc.constantFrom('ada', 'bob', 'Ådа', '\u{1f600}', "'\\", '\0', 'z', 'a'.repeat(300)),
  organization: fc.constantFrom('acme', 'bolt', 'ö'),
  deleted: fc.integer({ min: 0, max: 6 }).map((die) => die === 0),
  /** Whether its writer did not know the last deletion of the user. */
  overtook: fc.boolean(),
  // Few, so that many are seen at the same time.
  hours: fc.integer({ min: 0, max: 9 }),
});
type Change = typeof change extends fc.Arbitrary<infer One> ? One : never;

const timeOf = ({ hours }: Change) => START_MS + hours * 3_600_000;
const versionUs = (index: number) => (START_MS + index * 3) * 1_000 + 7;

/** Whether a later change deletes the user of this one. */
function isDeletedLater({ user }: Change, index: number, changes: readonly Change[]): boolean {
  return changes.some((other, later) => later > index && other.deleted && other.user === user);
}

/** Returns the deletion after which the row of a user begins; what a writer did not know, the erasure puts right. */
function deletionBefore(
  { user, overtook }: Change,
  index: number,
  changes: readonly Change[],
  erased: boolean,
): string {
  const known = changes.slice(0, index).flatMap((one, at) => (one.deleted && one.user === user ? [versionUs(at)] : []));
  return String(known.at(overtook && !erased ? -2 : -1) ?? '');
}

/** Stores what the writer stores, and what the erasure has left of it. */
async function store(changes: readonly Change[], erased: boolean): Promise<void> {
  await empty();
  for (const [index, one] of changes.entries()) {
    const version = versionUs(index);
    if (one.deleted) {
      const deletion = { workspace_id: 'a', user_id: one.user, version };
      await query.insert('user_deletions', [deletion]);
      if (!erased) await query.insert('pending_deletions', [{ ...deletion, stored_at: 1 }]);
      continue;
    }
    const seen = { workspace_id: 'a', first_seen_at: timeOf(one), last_seen_at: timeOf(one), version };
    const isErased = erased && isDeletedLater(one, index, changes);
    await query.insert('entities', [
      ...(isErased
        ? []
        : [{ ...seen, kind: 'user', id: one.user, other_id: deletionBefore(one, index, changes, erased) }]),
      { ...seen, kind: 'organization', id: one.organization },
      { ...seen, kind: 'membership', id: one.user, other_id: one.organization },
    ]);
    const event = { userId: one.user, groupId: one.organization, timestampMs: timeOf(one), receivedAtUs: version };
    if (!isErased) await query.store('a', [anEvent(event)]);
  }
  await query.insert('entities', [
    { workspace_id: 'b', kind: 'user', id: 'other', first_seen_at: START_MS, last_seen_at: START_MS, version: 1 },
  ]);
}

interface Seen {
  readonly id: string;
  readonly firstSeenAt: string;
  readonly lastSeenAt: string;
}

const KINDS = [
  { kind: 'user', path: '/users', idName: 'foreignId' },
  { kind: 'organization', path: '/organizations', idName: 'foreignUserGroupId' },
] as const;
type Kind = (typeof KINDS)[number];

const FIELDS = ['id', 'firstSeenAt', 'lastSeenAt'] as const;

/** The list in the plainest way. */
function fold(changes: readonly Change[], { kind }: Kind, field: (typeof FIELDS)[number], direction: string): Seen[] {
  const live = changes.filter(
    (one, index) => !one.deleted && (kind === 'organization' || !isDeletedLater(one, index, changes)),
  );
  const sign = direction === 'ASC' ? 1 : -1;
  const bytes = (a: string, b: string) => Buffer.compare(Buffer.from(a), Buffer.from(b));
  return [...Map.groupBy(live, (one) => one[kind])]
    .map(([id, own]) => ({
      id,
      firstSeenAt: new Date(Math.min(...own.map(timeOf))).toISOString(),
      lastSeenAt: new Date(Math.max(...own.map(timeOf))).toISOString(),
    }))
    .sort((a, b) => sign * (bytes(a[field], b[field]) || bytes(a.id, b.id)));
}

/** Reads a list to its end; `between` runs after every page. */
async function readAll(
  { path, idName }: Kind,
  parameters: string,
  limit: number,
  between: (page: number) => Promise<void> = async () => undefined,
): Promise<Seen[]> {
  const found: Seen[] = [];
  let cursor = '';
  for (let page = 0; ; page += 1) {
    const { status, body } = await query.get(`${path}?limit=${limit}&${parameters}${cursor}`);
    expect(status, JSON.stringify(body)).toBe(200);
    for (const { [idName]: id, firstSeenAt, lastSeenAt } of body.results as unknown as Record<string, string>[]) {
      const seen = { id, firstSeenAt, lastSeenAt } as Seen;
      // A list that begins anew with every page would never end.
      expect(found).not.toContainEqual(seen);
      found.push(seen);
    }
    if (body.nextCursor === null) return found;
    expect(body.results).toHaveLength(limit);
    cursor = `&cursor=${body.nextCursor}`;
    await between(page);
  }
}

test('every order of users and organizations is that of a fold, over all pages, merged or not', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(change, { minLength: 5, maxLength: 25, size: 'max' }),
      fc.integer({ min: 2, max: 4 }),
      fc.boolean(),
      fc.boolean(),
      async (changes, limit, merged, erased) => {
        await store(changes, erased);
        if (merged) await mergeParts(query.clickHouse, 'entities');
        await wait(DELETIONS_FORGOTTEN_MS);
        for (const kind of KINDS) {
          for (const field of FIELDS) {
            for (const direction of ['ASC', 'DESC']) {
              const order = `orderByField=${field}&orderByDirection=${direction}`;
              expect([order, await readAll(kind, order, limit)]).toEqual([
                order,
                fold(changes, kind, field, direction),
              ]);
            }
          }
        }
      },
    ),
    // To shrink it would take longer than the test may.
    { numRuns: 4, endOnFailure: true },
  );
});

test.each([
  [true, false],
  [false, false],
  [true, true],
  [false, true],
])(
  'users who came back after a deletion stand where the times since then say (merged: %s, erased: %s)',
  async (merged, erased) => {
    const seen = (user: string, hours: number): Change => ({
      ...{ user, organization: 'acme', deleted: false, hours },
      overtook: user === 'late',
    });
    const deletion = (user: string): Change => ({ ...seen(user, 0), deleted: true });
    const changes = [
      ...[seen('early', 0), seen('late', 9), seen('gone', 4), deletion('early'), deletion('late'), deletion('gone')],
      ...[seen('early', 5), seen('late', 1), seen('other', 3)],
    ];
    await store(changes, erased);
    if (merged) await mergeParts(query.clickHouse, 'entities');
    await wait(DELETIONS_FORGOTTEN_MS);
    for (const field of ['firstSeenAt', 'lastSeenAt'] as const) {
      for (const direction of ['ASC', 'DESC']) {
        const found = await readAll(KINDS[0], `orderByField=${field}&orderByDirection=${direction}`, 1);
        expect([field, direction, found]).toEqual([field, direction, fold(changes, KINDS[0], field, direction)]);
      }
    }
  },
);

test('a user may be seen first and last in any century', async () => {
  const times = ['1950-06-01T12:30:00.000Z', '2026-03-01T00:00:00.000Z', '2250-01-01T00:00:00.000Z'];
  await query.insert(
    'entities',
    times.map((time, version) => {
      const [first_seen_at, last_seen_at] = [Date.parse(time), Date.parse(time)];
      return { workspace_id: 'a', kind: 'user', id: 'ada', first_seen_at, last_seen_at, version };
    }),
  );
  // ClickHouse compiles what it has run a few times.
  for (let run = 0; run < 5; run += 1) {
    for (const field of FIELDS) {
      const found = await readAll(KINDS[0], `orderByField=${field}`, 2);
      expect([run, field, found]).toEqual([run, field, [{ id: 'ada', firstSeenAt: times[0], lastSeenAt: times[2] }]]);
    }
  }
});

/** Stores users of whom one was seen each minute; some have a plan. */
async function storeUsers(count: number, planOf: (user: number) => string | undefined): Promise<string[]> {
  const users = Array.from({ length: count }, (_, user) => ({ id: `${(user * 7) % count}`, user }));
  const common = { workspace_id: 'a', kind: 'user' };
  await query.insert(
    'entities',
    users.map(({ id, user }) => {
      const seen = START_MS + user * 60_000;
      return { ...common, id, first_seen_at: seen, last_seen_at: seen, version: 5 };
    }),
  );
  const plans = users.map(({ id, user }) => ({ id, plan: planOf(user) })).filter(({ plan }) => plan !== undefined);
  await query.insert(
    'entity_properties',
    plans.map(({ id, plan }) => ({ ...common, id, property: 'plan', register: aRegister(5, 'set', `"${plan}"`) })),
  );
  return users.map(({ id }) => id);
}

test.each(['ASC', 'DESC'])('filters that few, many and all users match find them in order (%s)', async (direction) => {
  const ids = await storeUsers(160, (user) => (user % 53 === 5 ? 'rare' : user % 2 === 0 ? 'pro' : undefined));
  const ordered = (found: string[]) => (direction === 'ASC' ? found : found.toReversed());
  const order = `orderByField=lastSeenAt&orderByDirection=${direction}`;
  for (const [filter, limit, matches] of [
    ['properties.plan=rare', 1, (user: number) => user % 53 === 5],
    ['properties.plan=pro', 30, (user: number) => user % 53 !== 5 && user % 2 === 0],
    ['properties.plan[ne]=none', 60, () => true],
    ['properties.plan=none', 2, () => false],
  ] as const) {
    const found = await readAll(KINDS[0], `${order}&${filter}`, limit);
    expect([filter, found.map(({ id }) => id)]).toEqual([filter, ordered(ids.filter((_, user) => matches(user)))]);
  }
});

test.each(['ASC', 'DESC'])('by identifier, a filter finds the same users backwards (%s)', async (direction) => {
  const ids = await storeUsers(60, (user) => (user % 29 === 3 ? 'rare' : user % 2 === 0 ? 'pro' : undefined));
  for (const [filter, matches] of [
    ['properties.plan=rare', (user: number) => user % 29 === 3],
    ['properties.plan=pro', (user: number) => user % 29 !== 3 && user % 2 === 0],
    ['properties.plan[ne]=pro', (user: number) => user % 29 === 3 || user % 2 !== 0],
    ['properties.plan[exists]=true&properties.plan[prefix]=p', (user: number) => user % 29 !== 3 && user % 2 === 0],
  ] as const) {
    const expected = ids.filter((_, user) => matches(user)).sort();
    const found = await readAll(KINDS[0], `orderByDirection=${direction}&${filter}`, 8);
    expect(found.map(({ id }) => id)).toEqual(direction === 'ASC' ? expected : expected.reverse());
  }
});

test.each(['firstSeenAt', 'lastSeenAt'])(
  'users who are seen meanwhile hide and repeat no other one (%s)',
  async (field) => {
    const ids = await storeUsers(20, () => undefined);
    const found = await readAll(KINDS[0], `orderByField=${field}&orderByDirection=DESC`, 3, async (page) => {
      // A new user, and one who was last seen long ago.
      const seen = START_MS + 86_400_000 + page;
      const user = { workspace_id: 'a', kind: 'user', first_seen_at: seen, last_seen_at: seen, version: 6 };
      await query.insert('entities', [
        { ...user, id: `new${page}` },
        { ...user, id: ids[0] },
      ]);
    });
    const stable = found.map(({ id }) => id).filter((id) => id !== ids[0]);
    expect(stable).toEqual(ids.slice(1).reverse());
  },
);

test('a cursor belongs to its order, and an unknown order is refused', async () => {
  await storeUsers(5, () => undefined);
  const { body } = await query.get('/users?limit=2&orderByField=lastSeenAt');
  for (const [parameters, error] of [
    [`orderByField=firstSeenAt&cursor=${body.nextCursor}`, 'cursor'],
    [`orderByField=lastSeenAt&orderByDirection=DESC&cursor=${body.nextCursor}`, 'cursor'],
    [`cursor=${body.nextCursor}`, 'cursor'],
    ['orderByField=plan', 'orderByField'],
    ['orderByDirection=up', 'orderByDirection'],
  ]) {
    const { status, body } = await query.get(`/users?${parameters}`);
    expect([status, body.errors.map(({ path }) => path)]).toEqual([400, [error]]);
  }
});
