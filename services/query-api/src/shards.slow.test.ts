import { entityHash, eventHash } from '@sluice/shared/rows/row-hashes';
import { eventually } from '@sluice/shared/testing/eventually';
import fc, { sample } from '@sluice/shared/testing/fast-check';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { ORDER_FIELDS } from './records/events/event-columns.ts';
import {
  anEvent,
  aRegister,
  type QueryService,
  startQuery,
  type TestEvent,
  type TestResponse,
} from './testing/query-service.ts';
import { type Shard, type Shards, startShards } from './testing/shards.ts';
import { expectEvents, listenTo, PATIENCE, type TestStreams } from './testing/streams.ts';

/** A row is on the server that has its partition. */
const PARTITIONS = 48;
const OF_A = { first: 0, last: 31 };
const OF_B = { first: 32, last: PARTITIONS - 1 };

/** Settings of the account that would lose rows or refuse queries. */
const CONTRARY_SETTINGS = {
  skip_unavailable_shards: '1',
  distributed_group_by_no_merge: '1',
  force_optimize_skip_unused_shards: '2',
};

const WORKSPACES = ['a', 'b', 'e'] as const;
/** Its events of the first days have expired. */
const EXPIRING = 'e';
const KEPT_FROM_MS = Date.UTC(2026, 2, 1);
const USERS = ['ada', 'bob', 'cem', 'dee', 'eve', 'fay', "o'\0h"];
/** Users whose deletion is pending. */
const HIDDEN = ['ada', 'bob', 'dee'];
const START_MS = Date.UTC(2026, 1, 27);
const DAY_MS = 86_400_000;
/** In how many inserts each server gets what it has of users and organizations. */
const PARTS = 6;

/** One server with all rows. */
let single: QueryService;
/** Servers with two ranges, which share the same rows; one range has two mirrors. */
let sharded: Shards;
/** Those of each range. */
let ranges: readonly (readonly Shard[])[];
let streams: TestStreams;

beforeAll(async () => {
  sharded = await startShards({ a1: OF_A, b1: OF_B, b2: OF_B }, CONTRARY_SETTINGS);
  ranges = [OF_A, OF_B].map((range) => sharded.shards.filter(({ partitions }) => partitions.first === range.first));
  single = await startQuery(String(sharded.shards[0]?.url));
  streams = await listenTo(sharded);
  for (const workspace of WORKSPACES) await storeEverything(workspace);
  // The lag of servers is measured by another clock.
  vi.useFakeTimers({ toFake: ['Date'], now: KEPT_FROM_MS + 7 * DAY_MS });
  for (const each of everywhere()) await each.insert('retention', [{ workspace_id: EXPIRING, days: 7 }]);
});
afterAll(async () => {
  vi.useRealTimers();
  await single?.stop();
  await sharded?.stop();
});

function everywhere(): readonly Pick<QueryService, 'insert'>[] {
  return [single, ...sharded.shards];
}

/** Returns the mirrors that have a row. */
function mirrorsOf(hash: number): readonly Shard[] {
  return (hash % PARTITIONS <= OF_A.last ? ranges[0] : ranges[1]) ?? [];
}

async function storeEvents(workspace: string, events: readonly TestEvent[]): Promise<void> {
  await single.store(workspace, events);
  for (const [mirrors, share] of Map.groupBy(events, ({ uuid }) => mirrorsOf(eventHash(uuid)))) {
    expect(share.length).toBeGreaterThan(0);
    for (const shard of mirrors) await shard.store(workspace, share);
  }
}

type Row = Readonly<Record<string, unknown>>;

/** Stores rows about users and organizations on the server of each. */
async function storeOfEntities(table: string, rows: readonly Row[]): Promise<void> {
  await single.insert(table, rows);
  const byShard = Map.groupBy(rows, ({ workspace_id, kind = 'user', id, user_id }) =>
    mirrorsOf(entityHash(String(workspace_id), String(kind), String(id ?? user_id))),
  );
  expect(byShard.size).toBe(2);
  for (const [mirrors, share] of byShard) for (const shard of mirrors) await shard.insert(table, share);
}

function pick<Item>(items: readonly Item[], index: number): Item {
  return items[index % items.length] as Item;
}

function someEvents(count: number): TestEvent[] {
  return sample(fc.uuid(), count).map((uuid, index) =>
    anEvent({
      uuid,
      // Few timestamps, so that cursors go through equal ones; over the end of a month.
      timestampMs: START_MS + (index % 5) * DAY_MS,
      receivedAtUs: (START_MS + 6 * DAY_MS) * 1_000 + (index % 9) * 500,
      event: pick(['opened', 'Closed', 'öffnet'], index),
      userId: pick(['', ...USERS], index * 7),
      groupId: pick(['', 'acme', 'bolt'], index),
      properties: pick(['{}', '{"plan":"pro","n":1}', '{"plan":"free","n":2}'], index * 5),
    }),
  );
}

/** Events, users with properties, deletions of which some are erased, and users who came back after theirs. */
async function storeEverything(workspace: string): Promise<void> {
  const events = someEvents(150);
  const of = { workspace_id: workspace };
  const deletedAt = (START_MS + 6 * DAY_MS) * 1_000 + 2_000;
  const erased = events.filter(({ userId, receivedAtUs }) => userId === 'fay' && receivedAtUs <= deletedAt);
  await storeEvents(
    workspace,
    events.filter((event) => !erased.includes(event)),
  );
  const deletionsOf = (users: readonly string[]) =>
    users.map((user_id) => ({ ...of, user_id, version: deletedAt, stored_at: 1 }));
  for (const each of everywhere()) {
    await each.insert(
      'user_deletions',
      deletionsOf([...HIDDEN, 'fay']).map(({ stored_at: _, ...row }) => row),
    );
    await each.insert('pending_deletions', deletionsOf(HIDDEN));
  }

  const kinds = ['user', 'organization'] as const;
  const entities = kinds.flatMap((kind) =>
    [...USERS, 'acme', 'bolt', 'ida', 'joe'].map((id, index) => ({
      kind,
      id,
      version: deletedAt + (index % 3) * 400 - 400,
    })),
  );
  const ofServers = new Map(everywhere().map((each): [Pick<QueryService, 'insert'>, Row[]] => [each, []]));
  const add = (each: Pick<QueryService, 'insert'>, ...rows: readonly Row[]) => ofServers.get(each)?.push(...rows);
  // Events of a user are on all servers, and each of them has a row of the user. After a split, each has all of it.
  for (const [index, { version, ...entity }] of entities.entries()) {
    const [first, last] = [START_MS + index, START_MS + DAY_MS];
    const row = (from: number, to: number, newest: number) => ({
      ...{ ...of, ...entity, first_seen_at: from, last_seen_at: to, version: newest },
    });
    add(single, row(first, last, version));
    if (index % 3 === 0) {
      for (const each of sharded.shards) add(each, row(first, last, version));
      continue;
    }
    const [some = [], others = []] = index % 2 === 0 ? ranges : ranges.toReversed();
    for (const each of some) add(each, row(first, first, version));
    for (const each of others) add(each, row(last, last, version - 500));
  }
  await storeOfEntities(
    'user_sightings',
    entities.filter(({ kind }) => kind === 'user').map(({ id, version }) => ({ ...of, user_id: id, version })),
  );
  const together = events.filter(({ userId, groupId }) => userId !== '' && groupId !== '');
  for (const [index, { uuid, userId, groupId, timestampMs, receivedAtUs }] of together.entries()) {
    const seen = { ...of, first_seen_at: timestampMs, last_seen_at: timestampMs, version: receivedAtUs };
    const rows = [
      { ...seen, kind: 'membership', id: userId, other_id: groupId },
      { ...seen, kind: 'member', id: groupId, other_id: userId },
    ];
    const servers = index % 3 === 0 ? sharded.shards : mirrorsOf(eventHash(uuid));
    for (const each of [single, ...servers]) add(each, ...rows);
  }
  for (const [each, rows] of ofServers) {
    // Rows of one user or organization are in several parts.
    const size = Math.ceil(rows.length / PARTS);
    for (let from = 0; from < rows.length; from += size) await each.insert('entities', rows.slice(from, from + size));
  }
  const registers = entities.flatMap(({ version, ...entity }, index) =>
    ['plan', 'n', 'gone'].map((property) => ({
      ...of,
      ...entity,
      property,
      register: aRegister(version, property === 'gone' ? 'remove' : 'set', pick(['"pro"', '"free"', '1'], index)),
    })),
  );
  await storeOfEntities('entity_properties', registers);
}

const eventsUrl = fc
  .record({
    field: fc.constantFrom(...ORDER_FIELDS),
    direction: fc.constantFrom('ASC', 'DESC'),
    limit: fc.constantFrom(0, 7, 40, 1_000),
    offset: fc.constantFrom(0, 0, 3, 50),
    filters: fc.subarray(
      ['event=opened', 'userId=cem', 'userId=ada', 'groupId=acme', 'properties.plan=pro', 'properties.n__gt=1'],
      { maxLength: 2 },
    ),
    time: fc.constantFrom('', `startDate=${new Date(START_MS + DAY_MS).toISOString()}`, 'endDate=2026-03-01'),
  })
  .map(({ field, direction, limit, offset, filters, time }) =>
    [`/events?orderByField=${field}&orderByDirection=${direction}&limit=${limit}&offset=${offset}`, ...filters, time]
      .filter((parameter) => parameter !== '')
      .join('&'),
  );

const entitiesUrl = fc
  .record({
    path: fc.constantFrom('/users', '/organizations'),
    limit: fc.constantFrom(0, 1, 3, 1_000),
    order: fc.constantFrom('', 'orderByField=firstSeenAt', 'orderByField=lastSeenAt&orderByDirection=DESC'),
    filter: fc.constantFrom(
      '',
      'properties.plan=pro',
      'properties.plan=free',
      'properties.n=1',
      'properties.gone__exists=false',
    ),
  })
  .map(({ path, limit, order, filter }) => `${path}?limit=${limit}&${order}${filter && `&${filter}`}`);

const entityUrl = fc
  .tuple(fc.constantFrom('/users', '/organizations'), fc.constantFrom(...USERS, 'acme', 'ida', 'nobody'))
  .map(([path, id]) => `${path}/${encodeURIComponent(id)}`);

const membershipsUrl = fc
  .record({
    path: fc.constantFrom(
      ...USERS.map((id) => `/users/${encodeURIComponent(id)}/organizations`),
      '/organizations/acme/users',
      '/organizations/bolt/users',
      '/organizations/nobody/users',
    ),
    limit: fc.constantFrom(0, 1, 3, 1_000),
  })
  .map(({ path, limit }) => `${path}?limit=${limit}`);

const DATES = 'startDate=2026-02-27&endDate=2026-03-10';
const reportsUrl = fc.constantFrom(
  `/events/funnel?steps=opened,Closed&${DATES}&groupBy=groupId`,
  `/events/funnel?steps=opened,opened,${encodeURIComponent('öffnet')}&by=organization&${DATES}&step2.properties.n=1`,
  `/events/funnel/people?steps=opened,Closed&${DATES}&step=2&dropped=true`,
  `/events/funnel/people?steps=opened,opened&by=organization&${DATES}&step=1&groupBy=type&group=%22track%22`,
  `/events/retention?interval=day&periods=5&${DATES}`,
  `/events/retention/people?interval=week&cohort=2026-03-01&period=1&${DATES}`,
  `/events/retention?event=opened&returnEvent[ne]=opened&timeZone=Asia/Kathmandu&periods=5&${DATES}`,
);
const menuUrl = fc
  .record({
    menu: fc.constantFrom(
      'names?',
      'properties?',
      ...['event', 'userId', 'properties.n'].map((of) => `values?property=${of}`),
    ),
    filter: fc.constantFrom('', 'event=opened', 'userId=ada', 'properties.plan=pro', 'type=track', 'prefix=o'),
    time: fc.constantFrom('', `startDate=${new Date(START_MS + DAY_MS + 1).toISOString()}`, 'endDate=2026-03-01'),
  })
  .map(({ menu, filter, time }) => `/events/${menu}&${filter}&${time}`);

const activityUrl = entityUrl.map((url) => `${url}/activity`);
const seriesUrl = fc
  .record({
    measure: fc.constantFrom('count', 'users', 'organizations', 'sum:properties.n', 'p50:properties.n'),
    groupBy: fc.constantFrom('', 'event', 'userId', 'properties.plan,groupId'),
    groups: fc.constantFrom(1, 3),
    filter: fc.constantFrom('', 'event[ne]=opened', 'groupId=acme'),
  })
  .map(({ measure, groupBy, groups, filter }) =>
    [
      `/events/series?startDate=2026-02-01&endDate=2026-03-31&timeZone=Europe/Berlin&compare=previous&measure=${measure}`,
      groupBy && `groupBy=${groupBy}&groups=${groups}`,
      filter,
    ]
      .filter((parameter) => parameter !== '')
      .join('&'),
  );

function withoutRequestId(response: TestResponse): TestResponse {
  return { ...response, text: response.text.replace(/"requestId":"[^"]*"/, '') };
}

/** How many pages of a list are read. */
const PAGES_MAX = 3;

/** Follows the cursors of a list, and expects the same pages from both services. */
async function expectSamePages(url: string, workspace: string): Promise<void> {
  let cursor: string | null | undefined = '';
  for (let pages = 0; pages < PAGES_MAX && typeof cursor === 'string'; pages += 1) {
    const page: string = cursor === '' ? url : `${url.replace(/&offset=\d+/, '')}&cursor=${encodeURIComponent(cursor)}`;
    const [{ body, ...expected }, ...others] = (
      await Promise.all([single, sharded].map((service) => service.get(page, workspace)))
    ).map(withoutRequestId) as [TestResponse, ...TestResponse[]];
    for (const { status, text } of others) expect({ page, status, text }).toEqual({ page, ...expected });
    cursor = body.nextCursor;
  }
}

test('deletions hide events and users in what the queries below return', async () => {
  const { body } = await single.get('/events?limit=0');
  expect(body.total).toBeGreaterThan(50);
  expect(body.total).toBeLessThan(140);
  const users = await single.get('/users?limit=1000');
  const ids = users.body.results.map(({ foreignId }) => foreignId);
  expect(ids).toEqual(['acme', 'bolt', 'cem', 'eve', 'fay', 'ida', 'joe', "o'\0h"]);
});

test('of one workspace, events have expired in what the queries below return', async () => {
  const { body } = await single.get('/events?limit=1000', EXPIRING);
  expect(body.total).toBe(body.results.length);
  expect(body.total).toBeGreaterThan(10);
  const times = body.results.map(({ timestamp }) => Date.parse(String(timestamp)));
  expect(Math.min(...times)).toBe(KEPT_FROM_MS);
});

test('every query of two ranges returns what one server returns with the same rows', async () => {
  const url = fc.oneof(
    { weight: 3, arbitrary: eventsUrl },
    entitiesUrl,
    entityUrl,
    membershipsUrl,
    reportsUrl,
    seriesUrl,
    menuUrl,
    activityUrl,
  );
  await fc.assert(
    fc.asyncProperty(url, fc.constantFrom(...WORKSPACES), (query, workspace) => expectSamePages(query, workspace)),
    { numRuns: 12, endOnFailure: true },
  );
});

test.each(['ndjson', 'csv', 'parquet'])('an export of two ranges is that of one server: %s', async (format) => {
  const exportOf = async ({ app }: Pick<QueryService, 'app'>) => {
    const url = `/events/export?format=${format}&startDate=2026-02-01&properties.plan=pro`;
    const { statusCode, rawPayload } = await app.inject({ url, headers: { authorization: 'Bearer a' } });
    expect(statusCode).toBe(200);
    return rawPayload.toString('latin1');
  };
  const [one, several] = [await exportOf(single), await exportOf(sharded)];
  if (format === 'parquet') expect(several).toMatch(/^PAR1.*PAR1$/s);
  else expect(several).toBe(one);
  expect(one.length).toBeGreaterThan(1_000);
});

test('a stream follows the order of storage of both ranges, and is resumed after each of its events', async () => {
  const stream = await streams.open('?event[ne]=nothing', { workspace: 'd' });
  const events: TestEvent[] = [];
  for (let batch = 0; batch < 4; batch += 1) {
    const some = someEvents(8);
    await storeEvents('d', some);
    events.push(...some);
  }
  await expectEvents(stream, events);
  const resume = async (id: string, rest: ReadonlySet<string>) => {
    const resumed = await streams.open('', { workspace: 'd', lastEventId: id });
    await eventually(() => resumed.events.length, PATIENCE).toBe(rest.size);
    expect(new Set(resumed.uuids)).toEqual(rest);
  };
  const { uuids } = stream;
  await Promise.all(stream.events.map(({ id }, index) => resume(id, new Set(uuids.slice(index + 1)))));
  await streams.closeAll();
});

test('when the newest blocks of one range are gone, a stream goes on with those of the other', async () => {
  const [a1] = sharded.shards as [Shard, Shard, Shard];
  const ofRange = (shards: readonly Shard[] | undefined, count: number, given: Partial<TestEvent> = {}) =>
    sample(fc.uuid(), 50)
      .filter((uuid) => mirrorsOf(eventHash(uuid)) === shards)
      .slice(0, count)
      .map((uuid) => anEvent({ uuid, ...given }));
  const stream = await streams.open('', { workspace: 'f' });
  // Of a month that no other event has.
  const newest = ofRange(ranges[1], 2, { timestampMs: Date.UTC(2025, 5, 1) });
  await storeEvents('f', [...newest, ...ofRange(ranges[0], 1)]);
  await eventually(() => newest.every(({ uuid }) => stream.uuids.includes(uuid)), PATIENCE).toBe(true);
  for (const { clickHouse } of ranges[1] ?? []) {
    const parts = await clickHouse.query({
      query: "SELECT DISTINCT _partition_id AS id FROM events WHERE workspace_id = 'f' AND timestamp < '2025-07-01'",
      format: 'JSONEachRow',
    });
    const [{ id }] = (await parts.json<{ id: string }>()) as [{ id: string }];
    await clickHouse.command({ query: 'ALTER TABLE events DROP PARTITION ID {id:String}', query_params: { id } });
  }
  for (const event of ofRange(ranges[0], 3)) {
    await a1.store('f', [event]);
    await eventually(() => stream.uuids.at(-1), PATIENCE).toBe(event.uuid);
  }
  expect(stream.problems).toEqual([]);
  await streams.closeAll();
});

const EVERYTHING = [
  '/events',
  '/events?limit=0',
  '/users',
  '/organizations',
  '/events/names',
  '/events/properties',
  '/events/series?startDate=2026-02-01',
  '/overview',
];

async function expectStatus(urls: readonly string[], status: number): Promise<void> {
  const statusOf = async (url: string) => [url, (await sharded.get(url, 'c')).status];
  expect(await Promise.all(urls.map(statusOf))).toEqual(urls.map((url) => [url, status]));
}

test('when a server is gone, requests and streams go on with its mirror; a uuid needs only the server that has it', async () => {
  const [a1, b1, b2] = sharded.shards as [Shard, Shard, Shard];
  const events = someEvents(40);
  await storeEvents('c', events);
  const [ofA, ofB] = [a1, b1].map((shard) => events.find(({ uuid }) => mirrorsOf(eventHash(uuid)).includes(shard)));
  for (const each of sharded.shards) {
    await each.progress(60_000);
    await each.progress();
  }
  const stream = await streams.open('', { workspace: 'c' });
  const before = someEvents(10);
  await storeEvents('c', before);
  const untilGot = async (sent: readonly TestEvent[]) => {
    const missing = () => sent.filter(({ uuid }) => !stream.uuids.includes(uuid));
    await eventually(missing, PATIENCE).toEqual([]);
  };
  await untilGot(before);
  for (const each of sharded.shards) await each.progress();
  // So many that another hash could not find all of them by chance.
  for (const { uuid } of events.slice(0, 12)) {
    expect((await sharded.get(`/events?uuid=${uuid}`, 'c')).body).toMatchObject({ total: 1, results: [{ uuid }] });
  }

  await b1.kill9();
  await expectStatus(EVERYTHING, 200);
  const after = someEvents(10);
  for (const event of after) {
    for (const shard of mirrorsOf(eventHash(event.uuid))) if (shard !== b1) await shard.store('c', [event]);
  }
  await untilGot([...before, ...after]);
  expect(stream.moves).toEqual([{ from: 'a1+b1', to: 'a1+b2', since: expect.any(String) }]);
  await streams.closeAll();

  const goOn = b2.relay.freeze();
  const { body } = await sharded.get(`/events?uuid=${ofA?.uuid}`, 'c');
  expect(body).toMatchObject({ total: 1, results: [{ uuid: ofA?.uuid }] });
  await expectStatus([...EVERYTHING, `/events?uuid=${ofB?.uuid}`], 503);
  goOn();
  await expectStatus(EVERYTHING, 200);
  await b2.kill9();
  await expectStatus(EVERYTHING, 503);
});
