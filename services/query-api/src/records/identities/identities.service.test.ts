import { setTimeout as wait } from 'node:timers/promises';
import { sample } from '@sluice/shared/testing/fast-check';
import { until } from '@sluice/shared/testing/until';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { anyGraph, expectIdentities, type IdentityGraph, storeGraph } from '../../testing/identity-graphs.ts';
import {
  anEvent,
  aRegister,
  DELETIONS_FORGOTTEN_MS,
  type QueryService,
  startQuery,
  TEST_WORKSPACES,
  type TestEvent,
} from '../../testing/query-service.ts';

let query: QueryService;
const graphs = new Map<string, IdentityGraph>();

/** Have no random links. */
const OWN = 'h';
const UNLINKED = 'g';
const RANDOM = TEST_WORKSPACES.filter((name) => name !== OWN && name !== UNLINKED);

beforeAll(async () => {
  query = await startQuery(inject('clickhouseUrl'));
  for (const [index, graph] of sample(anyGraph, RANDOM.length).entries()) {
    const workspace = RANDOM[index] as string;
    graphs.set(workspace, graph);
    await storeGraph(query, workspace, graph);
  }
  await wait(DELETIONS_FORGOTTEN_MS);
});
afterAll(() => query.stop());

test.each(RANDOM)(
  'each read of the random workspace %s says whose the events of visitors are, as the facts do one by one',
  async (workspace) => {
    await expectIdentities(query, workspace, graphs.get(workspace) as IdentityGraph);
  },
);

const START_MS = Date.UTC(2026, 2, 1);
const RANGE = 'startDate=2026-03-01&endDate=2026-03-31';

/** The first link of a visitor, by an event. */
const link = (anonymous_id: string, user_id: string, version = START_MS * 1_000) => ({
  ...{ workspace_id: OWN, anonymous_id, user_id, version, said: 0 },
});

/** An event so many minutes after the start. */
const at = (minute: number, event: string, more: Partial<TestEvent>) =>
  anEvent({ timestampMs: START_MS + minute * 60_000, event, ...more });

describe('a person who visits on two devices and buys on a third', () => {
  const events = [
    at(0, 'visited', { anonymousId: 'phone' }),
    at(1, 'signed_up', { anonymousId: 'laptop' }),
    at(2, 'paid', { userId: 'jane', anonymousId: 'tablet' }),
    // Nobody knows whose this is.
    at(3, 'visited', { anonymousId: 'kiosk' }),
    // Other events of the same time hide which ones are looked at first.
    at(4, 'visited', { userId: 'joe' }),
  ];
  const uuidsOf = (page: { readonly results: readonly Record<string, unknown>[] }) =>
    page.results.map(({ uuid }) => uuid).toSorted();
  const expected = (...indexes: number[]) => indexes.map((index) => events[index]?.uuid).toSorted();
  const get = async (path: string) => {
    const { status, body } = await query.get(path, OWN);
    expect([path, status, body]).toEqual([path, 200, expect.anything()]);
    return body;
  };

  beforeAll(async () => {
    await query.store(OWN, events);
    await query.insert(
      'identity_links',
      ['phone', 'laptop', 'tablet'].map((visitor) => link(visitor, 'jane')),
    );
    for (const [id, plan] of [
      ['jane', '"pro"'],
      ['joe', '"free"'],
    ] as const) {
      const user = { workspace_id: OWN, kind: 'user', id };
      const seen = { first_seen_at: START_MS, last_seen_at: START_MS + 120_000, version: 5 };
      await query.insert('entities', [{ ...user, ...seen }]);
      await query.insert('entity_properties', [{ ...user, property: 'plan', register: aRegister(5, 'set', plan) }]);
    }
  });

  test.each([
    ['', [1, 0, 0], [1, 1, 1]],
    ['&userId=jane', [0, 0, 0], [1, 1, 1]],
    ['&user.properties.plan=pro', [0, 0, 0], [1, 1, 1]],
    ['&user.properties.plan=free', [1, 0, 0], [1, 0, 0]],
    ['&step2.user.properties.plan=pro', [1, 0, 0], [1, 1, 1]],
    ['&step2.user.properties.plan=free', [1, 0, 0], [1, 0, 0]],
  ])('goes through a funnel as one with identity=linked, filtered by "%s"', async (filter, raw, linked) => {
    const counts = async (identity: string) => {
      const path = `/events/funnel?${RANGE}&steps=visited,signed_up,paid&identity=${identity}${filter}`;
      const { steps } = (await get(path)) as unknown as { steps: { count: number }[] };
      return steps.map(({ count }) => count);
    };
    // Whoever visited without signing in is nobody, and joe is another one.
    const others = filter === '' || filter.startsWith('&step') ? [1, 0, 0] : [0, 0, 0];
    expect(await counts('raw')).toEqual(raw);
    expect(await counts('linked')).toEqual(linked.map((count, step) => count + (others[step] ?? 0)));
  });

  test.each([
    ['user.properties.plan=pro', [0, 1, 2]],
    ['user.properties.plan[ne]=pro', [3, 4]],
    ['user.properties.plan[in]=pro,free', [0, 1, 2, 4]],
    ['user.properties.plan[exists]=true&limit=2', [2, 4]],
    ['user.firstSeenAt[lte]=2026-03-01', [0, 1, 2, 4]],
    ['userId=jane&orderByField=event', [0, 1, 2]],
    ['userId=jane&anonymousId=phone', [0]],
  ])('has the events of a list with identity=linked and %s', async (filter, indexes) => {
    expect(uuidsOf(await get(`/events?${RANGE}&identity=linked&${filter}`))).toEqual(expected(...indexes));
  });

  test('is one group by a property of the user', async () => {
    const path = `/events/series?${RANGE}&interval=none&groupBy=user.properties.plan&identity=linked`;
    const { series } = (await get(path)) as unknown as { series: { group: unknown[]; total: number }[] };
    expect(series.map(({ group, total }) => [group[0], total])).toEqual([
      ['pro', 3],
      ['free', 1],
      [null, 1],
    ]);
  });

  test('has all of its pages one after another, each with its own cursor', async () => {
    const first = await get(`/events?${RANGE}&identity=linked&userId=jane&limit=2`);
    expect(uuidsOf(first)).toEqual(expected(1, 2));
    const cursor = `cursor=${first.nextCursor}`;
    expect(uuidsOf(await get(`/events?${RANGE}&identity=linked&userId=jane&limit=2&${cursor}`))).toEqual(expected(0));
    const raw = await query.get(`/events?${RANGE}&userId=jane&limit=2&${cursor}`, OWN);
    expect(raw.body.errors).toEqual([expect.objectContaining({ path: 'cursor' })]);
  });

  test('did lately what its visitors did', async () => {
    const now = { timestampMs: Date.now() };
    const visits = [{ anonymousId: 'phone' }, { anonymousId: 'kiosk' }, { userId: 'jane' }];
    await query.store(
      OWN,
      visits.map((visit) => anEvent({ ...now, ...visit, event: 'lately' })),
    );
    const activity = async (parameters: string) =>
      (await get(`/users/jane/activity${parameters}`)) as unknown as { events: unknown[] };
    expect((await activity('?identity=raw')).events).toEqual([{ event: 'lately', count: 1 }]);
    expect((await activity('?identity=linked')).events).toEqual([{ event: 'lately', count: 2 }]);
  });

  test('is what a menu of names counts', async () => {
    const names = await get(`/events/names?${RANGE}&identity=linked&userId=jane`);
    expect(names.results.map(({ event }) => event).toSorted()).toEqual(['paid', 'signed_up', 'visited']);
  });

  test('is as before when somebody has taken a visitor back', async () => {
    const read = async () => [
      await get(`/events/series?${RANGE}&measure=users&identity=linked&interval=none`),
      await get(`/events?identity=linked`),
    ];
    const before = await read();
    await query.insert('identity_links', [link('kiosk', 'joe')]);
    expect(await read()).not.toEqual(before);
    await query.insert('identity_links', [{ ...link('kiosk', '', START_MS * 1_000 + 9), said: 1 }]);
    expect(await read()).toEqual(before);
  });
});

test('the first link of a workspace is seen soon after reads that asked for it', async () => {
  const workspace = UNLINKED;
  const event = anEvent({ anonymousId: 'nobody-yet' });
  await query.store(workspace, [event]);
  const read = async () => (await query.get(`/events?identity=linked&uuid=${event.uuid}`, workspace)).body.results;
  expect(await read()).toEqual([expect.objectContaining({ linkedUserId: null })]);
  await query.insert('identity_links', [{ ...link('nobody-yet', 'jane'), workspace_id: workspace }]);
  await until('the link is seen', async () => (await read())[0]?.['linkedUserId'] === 'jane');
});

test.each([
  ['/events?identity=both', 'identity'],
  ['/identities', 'userId'],
  ['/identities?userId=jane&colour=1', 'colour'],
  ['/identities/conflicts?cursor=x', 'cursor'],
  ['/events/stream?identity=both', 'identity'],
  ['/organizations/acme/activity?identity=linked', 'identity'],
])('%s is refused because of %s', async (path, parameter) => {
  const { status, body } = await query.get(path, OWN);
  expect([status, body.errors.map((error) => error.path)]).toEqual([400, [parameter]]);
});

test('pages of visitors and of conflicts have each once', async () => {
  const visitors = Array.from({ length: 5 }, (_, index) => `page-${index}`);
  await query.insert(
    'identity_links',
    visitors.flatMap((visitor) => [link(visitor, 'kim'), link(visitor, 'lee', START_MS * 1_000 + 1)]),
  );
  const all = async (path: string) => {
    const found: unknown[] = [];
    for (let cursor: string | null = ''; cursor !== null; ) {
      const { body } = await query.get(`${path}limit=2${cursor === '' ? '' : `&cursor=${cursor}`}`, OWN);
      found.push(...body.results.map(({ anonymousId }) => anonymousId));
      cursor = body.nextCursor;
    }
    return found;
  };
  expect(await all('/identities?userId=kim&')).toEqual(visitors);
  expect(await all('/identities?userId=lee&')).toEqual([]);
  expect(await all('/identities/conflicts?')).toEqual(visitors);
});

test('the visitors of a deleted user are hidden with it, until they have deletions of their own', async () => {
  const user = { workspace_id: OWN, user_id: 'mia', version: START_MS * 1_000 + 5 };
  const visit = (anonymousId: string, receivedAtUs: number) => anEvent({ anonymousId, receivedAtUs, event: 'of mia' });
  const events = [
    visit('mine', user.version),
    // Received after the deletion.
    visit('mine', user.version + 1),
    // Linked to her after the deletion, and to somebody else before.
    ...[visit('later', user.version), visit('theirs', user.version)],
  ];
  await query.store(OWN, events);
  await query.insert('identity_links', [
    link('mine', 'mia'),
    link('later', 'mia', user.version + 1),
    ...[link('theirs', 'noa'), link('theirs', 'mia', START_MS * 1_000 + 1)],
  ]);
  const shown = async () => {
    const { body } = await query.get('/events?event=of%20mia&identity=raw', OWN);
    return events.map(({ uuid }) => body.results.some((event) => event['uuid'] === uuid));
  };
  expect(await shown()).toEqual([true, true, true, true]);
  await query.insert('pending_deletions', [{ ...user, stored_at: 1 }]);
  await until('the deletion is known', async () => (await shown())[0] === false);
  expect(await shown()).toEqual([false, true, true, true]);
  // The writer has sent the deletions of her visitors, and they are stored.
  await query.insert('identity_deletions', [{ ...user, settled_at: START_MS }]);
  await until('that is known', async () => (await shown())[0] === true);
  expect(await shown()).toEqual([true, true, true, true]);
});

test('a deleted user has more visitors than a statement names: all of them are hidden', async () => {
  const user = { workspace_id: OWN, user_id: 'ned', version: START_MS * 1_000 + 5 };
  const names = Array.from({ length: 600 }, (_, index) => `${'of ned '.repeat(30)}${index}`);
  await query.insert(
    'identity_links',
    names.map((anonymousId) => link(anonymousId, 'ned')),
  );
  const receivedAtUs = user.version;
  await query.store(
    OWN,
    names.map((anonymousId) => anEvent({ anonymousId, receivedAtUs, event: 'of ned' })),
  );
  const count = async () => (await query.get('/events?event=of%20ned&limit=1', OWN)).body.total;
  expect(await count()).toBe(600);
  await query.insert('pending_deletions', [{ ...user, stored_at: 1 }]);
  await until('the deletion is known', async () => (await count()) === 0);
});
