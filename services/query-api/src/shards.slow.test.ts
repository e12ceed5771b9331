import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type LocalClickHouse, startClickHouseShards } from '@sluice/local-stack/clickhouse';
import { createDatabase } from '@sluice/shared/clickhouse/testing/test-database';
import { entityHash, eventHash } from '@sluice/shared/row-hashes';
import { eventually } from '@sluice/shared/testing/eventually';
import fc, { sample } from '@sluice/shared/testing/fast-check';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { querySettings } from './clickhouse/query-settings.ts';
import { tablesOf } from './clickhouse/tables.ts';
import { ORDER_FIELDS } from './events/event-columns.ts';
import { DAYS, HOURS, hourCountsQuery } from './reports/hour-counts.ts';
import {
  anEvent,
  aRegister,
  type QueryService,
  startQuery,
  type TestEvent,
  type TestResponse,
} from './testing/query-service.ts';
import { expectEvents, listenTo, PATIENCE } from './testing/streams.ts';

/** As KAFKA_PARTITIONS: a row is on the shard that holds its partition. */
const PARTITIONS = 48;

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

const started = new AsyncDisposableStack();
/** One server with all rows. */
let single: QueryService;
/** A service at each of two servers that share the same rows. */
let sharded: readonly QueryService[];
let killSecondShard: () => Promise<void>;

beforeAll(async () => {
  const dataDir = await mkdtemp(join(tmpdir(), 'sluice-shards-'));
  started.defer(() => rm(dataDir, { recursive: true, force: true }));
  const { cluster, shards } = await startClickHouseShards({ dataDir, profile: CONTRARY_SETTINGS });
  for (const shard of shards) started.defer(() => shard.kill9());
  const [first, second] = shards;
  if (!first || !second) throw new Error('there are no two shards');
  killSecondShard = () => second.kill9();
  single = await startQuery(first.url);
  const startOn = (shard: LocalClickHouse) =>
    startQuery(shard.url, { CLICKHOUSE_CLUSTER: cluster }, undefined, (url) => createDatabase(url, 'on_shards'));
  sharded = [await startOn(first), await startOn(second)];
  for (const workspace of WORKSPACES) await storeEverything(workspace);
  vi.useFakeTimers({ toFake: ['Date'], now: KEPT_FROM_MS + 7 * DAY_MS });
  started.defer(async () => {
    vi.useRealTimers();
  });
  for (const each of [single, ...sharded]) await each.insert('retention', [{ workspace_id: EXPIRING, days: 7 }]);
});
afterAll(() => started.disposeAsync());

function shardOf(hash: number): QueryService {
  return sharded[(hash % PARTITIONS) % sharded.length] as QueryService;
}

async function storeEvents(workspace: string, events: readonly TestEvent[]): Promise<void> {
  await single.store(workspace, events);
  for (const [shard, share] of Map.groupBy(events, ({ uuid }) => shardOf(eventHash(uuid)))) {
    expect(share.length).toBeGreaterThan(0);
    await shard.store(workspace, share);
  }
}

type Row = Readonly<Record<string, unknown>>;

/** Stores rows about users and organizations on the shard of each. */
async function storeOfEntities(table: string, rows: readonly Row[]): Promise<void> {
  await single.insert(table, rows);
  const byShard = Map.groupBy(rows, ({ workspace_id, kind = 'user', id, user_id }) =>
    shardOf(entityHash(String(workspace_id), String(kind), String(id ?? user_id))),
  );
  expect(byShard.size).toBe(2);
  for (const [shard, share] of byShard) await shard.insert(table, share);
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
  for (const each of [single, ...sharded]) {
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
  await storeOfEntities(
    'entities',
    entities.map((entity, index) => ({
      ...of,
      ...entity,
      first_seen_at: START_MS + index,
      last_seen_at: START_MS + DAY_MS,
    })),
  );
  await storeOfEntities(
    'user_sightings',
    entities.filter(({ kind }) => kind === 'user').map(({ id, version }) => ({ ...of, user_id: id, version })),
  );
  const together = events.filter(({ userId, groupId }) => userId !== '' && groupId !== '');
  await storeOfEntities(
    'entities',
    together.flatMap(({ userId, groupId, timestampMs, receivedAtUs }) => {
      const seen = { ...of, first_seen_at: timestampMs, last_seen_at: timestampMs, version: receivedAtUs };
      return [
        { ...seen, kind: 'membership', id: userId, other_id: groupId },
        { ...seen, kind: 'member', id: groupId, other_id: userId },
      ];
    }),
  );
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
  `/events/retention?interval=day&periods=5&${DATES}`,
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

/** Follows the cursors of a list, and expects the same pages from all services. */
async function expectSamePages(url: string, workspace: string): Promise<void> {
  let cursor: string | null | undefined = '';
  for (let pages = 0; pages < PAGES_MAX && typeof cursor === 'string'; pages += 1) {
    const page: string = cursor === '' ? url : `${url.replace(/&offset=\d+/, '')}&cursor=${encodeURIComponent(cursor)}`;
    const [{ body, ...expected }, ...others] = (
      await Promise.all([single, ...sharded].map((service) => service.get(page, workspace)))
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

test('every query of two shards returns what one server returns with the same rows', async () => {
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
    { numRuns: 60, endOnFailure: true },
  );
});

test('a stream follows the order of storage of both shards, and is resumed after each of its events', async () => {
  const [service] = sharded as [QueryService];
  const streams = await listenTo(service);
  const stream = await streams.open('?event[ne]=nothing', { workspace: 'd' });
  const events: TestEvent[] = [];
  for (let batch = 0; batch < 4; batch += 1) {
    const some = someEvents(8);
    await storeEvents('d', some);
    events.push(...some);
  }
  await expectEvents(stream, events);
  for (const [index, { id }] of stream.events.entries()) {
    const rest = new Set(stream.uuids.slice(index + 1));
    const resumed = await streams.open('', { workspace: 'd', lastEventId: id });
    await eventually(() => resumed.events.length, PATIENCE).toBe(rest.size);
    expect(new Set(resumed.uuids)).toEqual(rest);
    resumed.close();
  }
  await streams.closeAll();
});

test.each(['all', 'those that have not expired'])('each shard counts by its projections: %s', async (which) => {
  const [service] = sharded as [QueryService, QueryService];
  const range = { startMs: START_MS, endMs: START_MS + 4 * DAY_MS - 1 };
  const tables = which === 'all' ? tablesOf(service.config) : tablesOf(service.config).keptFrom(KEPT_FROM_MS);
  const selection = { fields: [], properties: [], ...range };
  const { sql, params } = hourCountsQuery(tables, selection, () => ({ event: 'event' }), undefined, [DAYS, HOURS]);
  const counts = async (settings: Readonly<Record<string, string>>) => {
    const result = await service.clickHouse.query({
      query: sql,
      query_params: { ...params, ...tables.params, workspace: 'a' },
      format: 'JSONCompact',
      clickhouse_settings: { ...querySettings(service.config), ...settings },
    });
    const { data, statistics } = await result.json<unknown[]>();
    return { data: new Map(data as [string, number][]), rows: statistics?.rows_read ?? 0 };
  };
  const events = await counts({ optimize_use_projections: '0' });
  const hours = await counts({ force_optimize_projection: '1' });
  expect(hours.data).toEqual(events.data);
  expect(hours.rows).toBeLessThan(events.rows / 2);
});

test('a look-up by uuid asks only the shard that has it; any other query fails while a shard is away', async () => {
  const events = someEvents(40);
  await storeEvents('c', events);
  const [service] = sharded as [QueryService, QueryService];
  const [here, there] = sharded.map((shard) => events.find(({ uuid }) => shardOf(eventHash(uuid)) === shard)?.uuid);
  // So many that another hash could not find all of them by chance.
  for (const { uuid } of events.slice(0, 12)) {
    expect((await service.get(`/events?uuid=${uuid}`, 'c')).body).toMatchObject({ total: 1, results: [{ uuid }] });
  }
  await killSecondShard();
  expect((await service.get(`/events?uuid=${here}`, 'c')).body).toMatchObject({ total: 1, results: [{ uuid: here }] });
  for (const url of [
    `/events?uuid=${there}`,
    '/events',
    '/events?limit=0',
    '/users',
    '/organizations/acme',
    '/events/names',
    '/events/properties',
    '/events/series?startDate=2026-02-01',
  ]) {
    expect([url, (await service.get(url, 'c')).status]).toEqual([url, 503]);
  }
});
