import fc from '@sluice/shared/testing/fast-check';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { conditionsFor, textOf } from '../../testing/conditions.ts';
import { anEvent, aRegister, type QueryService, startQuery } from '../../testing/query-service.ts';
import { meets } from '../../testing/reference.ts';

let query: QueryService;

beforeAll(async () => {
  query = await startQuery(inject('clickhouseUrl'));
});
afterAll(() => query.stop());

const kinds = ['user', 'organization'] as const;
type Kind = (typeof kinds)[number];
const paths = { user: '/users', organization: '/organizations' } as const;
const idNames = { user: 'foreignId', organization: 'foreignUserGroupId' } as const;

/** A submission about a user or an organization, or its deletion. */
interface Change {
  readonly kind: Kind;
  readonly id: string;
  readonly deleted: boolean;
  /** Timestamps in milliseconds. */
  readonly events: readonly number[];
  readonly properties: readonly (readonly [string, unknown])[];
}

const startMs = Date.UTC(2026, 2, 1);
const id = fc.constantFrom('ada', 'bob', 'Ådа', '\u{1f600}', '\ufffd', 'a/b?c#d%', ' ', "'\\", '\0');
const property = fc.constantFrom('plan', '', '__proto__', 'a.b', 'a', '1', 'ä"');
const value = fc.oneof(
  fc.constantFrom<unknown>(null, 'x', '\ud800', 1, 1e21, true, {}, [], { b: 'x' }, { '': { c: null } }, 2 ** 64),
  fc.json({ maxDepth: 2 }).map((text) => JSON.parse(text) as unknown),
);

const change: fc.Arbitrary<Change> = fc.record({
  kind: fc.constantFrom(...kinds),
  id,
  deleted: fc.integer({ min: 0, max: 6 }).map((die) => die === 0),
  events: fc.array(
    fc.integer({ min: 0, max: 9 }).map((day) => startMs + day * 86_400_000),
    { maxLength: 2 },
  ),
  properties: fc.uniqueArray(fc.tuple(property, value), { maxLength: 3, selector: ([name]) => name }),
});

/** The versions of changes: in their order, a few milliseconds apart. */
function versionUs(index: number): number {
  return (startMs + index * 3) * 1_000 + 7;
}

interface Expected {
  readonly id: string;
  readonly properties: Record<string, unknown>;
  readonly firstSeenAt: string;
  readonly lastSeenAt: string;
}

/** As the record of one entity has it. */
interface ExpectedAlone extends Expected {
  readonly propertiesSetAt: Record<string, string>;
}

/** Entities as the contract defines them, in the plainest way: the changes after the last deletion, in order. */
function fold(changes: readonly Change[], kind: Kind): ExpectedAlone[] {
  const byId = Map.groupBy([...changes.entries()], ([, one]) => (one.kind === kind ? one.id : ''));
  byId.delete('');
  const entities = [...byId].flatMap(([entityId, all]): ExpectedAlone[] => {
    const lastDeletion = all.findLastIndex(([, { deleted }]) => deleted && kind === 'user');
    const live = all.slice(lastDeletion + 1).filter(([, { deleted }]) => !deleted);
    if (live.length === 0) return [];
    const properties = new Map<string, unknown>();
    const setAt = new Map<string, string>();
    for (const [index, one] of live) {
      for (const [name, json] of one.properties) {
        if (json === null) properties.delete(name);
        else properties.set(name, json);
        if (json === null) setAt.delete(name);
        else setAt.set(name, new Date(Math.floor(versionUs(index) / 1_000)).toISOString());
      }
    }
    const times = live.flatMap(([index, { events }]) =>
      events.length > 0 ? events : [Math.floor(versionUs(index) / 1_000)],
    );
    return [
      {
        id: entityId,
        properties: Object.fromEntries(properties),
        firstSeenAt: new Date(Math.min(...times)).toISOString(),
        lastSeenAt: new Date(Math.max(...times)).toISOString(),
        propertiesSetAt: Object.fromEntries(setAt),
      },
    ];
  });
  return entities.sort((a, b) => Buffer.compare(Buffer.from(a.id), Buffer.from(b.id)));
}

function inList({ propertiesSetAt: _, ...record }: ExpectedAlone): Expected {
  return record;
}

interface StoredRow {
  readonly table: string;
  readonly row: Record<string, unknown>;
}

/** The rows that the writer stores for a change. */
function rowsOf(one: Change, index: number): StoredRow[] {
  const version = versionUs(index);
  const entity = { workspace_id: 'a', kind: one.kind, id: one.id };
  if (one.deleted) {
    if (one.kind === 'organization') return [];
    const row = { workspace_id: 'a', user_id: one.id, version };
    return [{ table: 'user_deletions', row }];
  }
  const seen = one.events.length > 0 ? one.events : [Math.floor(version / 1_000)];
  const rows: StoredRow[] = seen.map((ms) => ({
    table: 'entities',
    row: { ...entity, first_seen_at: ms, last_seen_at: ms, version },
  }));
  if (one.events.length === 0 && one.kind === 'user') {
    rows.push({ table: 'user_sightings', row: { workspace_id: 'a', user_id: one.id, version } });
  }
  for (const [name, json] of one.properties) {
    const register = aRegister(version, json === null ? 'remove' : 'set', json === null ? '' : JSON.stringify(json));
    rows.push({ table: 'entity_properties', row: { ...entity, property: name, register } });
  }
  return rows;
}

async function store(changes: readonly Change[], order: readonly number[]): Promise<void> {
  const tables = ['events', 'entities', 'entity_properties', 'user_deletions', 'user_sightings'];
  await Promise.all(tables.map((table) => query.clickHouse.command({ query: `TRUNCATE TABLE ${table}` })));
  const rows = changes.flatMap(rowsOf);
  // In any order, in two inserts that overlap.
  const shuffled = rows.toSorted(
    (a, b) => (order[rows.indexOf(a) % order.length] ?? 0) - (order[rows.indexOf(b) % order.length] ?? 0),
  );
  for (const rows of [shuffled.slice(0, shuffled.length / 2 + 1), shuffled.slice(shuffled.length / 2)]) {
    for (const [table, found] of Map.groupBy(rows, (stored) => stored.table)) {
      await query.insert(
        table,
        found.map(({ row }) => row),
      );
    }
  }
  const events = changes.flatMap((one, index) =>
    one.deleted
      ? []
      : one.events.map((timestampMs) =>
          anEvent({
            timestampMs,
            receivedAtUs: versionUs(index),
            ...(one.kind === 'user' ? { userId: one.id } : { groupId: one.id }),
          }),
        ),
  );
  if (events.length > 0) await query.store('a', events);
}

/** A change that sets properties of a user. */
function setProperties(entityId: string, properties: Change['properties']): Change {
  return { kind: 'user', id: entityId, deleted: false, events: [], properties };
}

/** Reads all pages of a list, as entities of the reference. */
async function readAll(kind: Kind, limit: number, filter = ''): Promise<unknown[]> {
  const found: unknown[] = [];
  let cursor = '';
  for (;;) {
    const { status, body } = await query.get(`${paths[kind]}?limit=${limit}${filter}${cursor}`);
    expect(status, JSON.stringify(body)).toBe(200);
    expect(body.limit).toBe(limit);
    found.push(...body.results.map(({ [idNames[kind]]: entityId, ...rest }) => ({ id: entityId, ...rest })));
    if (body.nextCursor === null) return found;
    cursor = `&cursor=${body.nextCursor}`;
  }
}

test('users and organizations are what the last changes made them, in whatever order these were stored', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(change, { minLength: 1, maxLength: 25 }),
      fc.array(fc.nat(), { minLength: 1, maxLength: 30 }),
      fc.integer({ min: 1, max: 4 }),
      fc.nat(),
      fc.gen(),
      async (changes, order, limit, choice, generate) => {
        await store(changes, order);
        for (const kind of kinds) {
          const expected = fold(changes, kind);
          expect(await readAll(kind, limit)).toEqual(expected.map(inList));

          const one = changes[choice % changes.length] as Change;
          const path = `${paths[kind]}/${encodeURIComponent(one.id)}`;
          const alone = expected.find((entity) => entity.id === one.id);
          for (const [parameters, record] of [
            ['', alone && inList(alone)],
            ['?propertyTimes=true', alone],
          ] as const) {
            const { status, body } = await query.get(path + parameters);
            expect(status).toBe(record ? 200 : 404);
            if (!record) continue;
            const { id: entityId, ...rest } = record;
            expect(body).toEqual({ [idNames[kind]]: entityId, ...rest });
          }

          const all = changes.flatMap(({ properties }) => properties);
          const [name, json] = all[choice % all.length] ?? ['a.b', 'x'];
          const [, other] = all[order.length % all.length] ?? [];
          const condition = generate(() => conditionsFor(json, other ?? null));
          const text = textOf(condition, true);
          if (text === '' || !text.isWellFormed()) continue;
          const filter = `&${new URLSearchParams({ [`properties.${name}[${condition.operator}]`]: text })}`;
          const matching = expected.filter(({ properties }) => meets(properties, name, condition));
          expect(await readAll(kind, limit, filter), filter).toEqual(matching.map(inList));
        }
      },
    ),
    { numRuns: 8 },
  );
});

test('a property filter of users reaches into values and matches names with dots', async () => {
  await store(
    [
      setProperties('one', [['a.b', 'x']]),
      setProperties('two', [['a', { b: 'x' }]]),
      setProperties('three', [['a', { b: 'y' }]]),
    ],
    [0],
  );
  expect((await readAll('user', 10, '&properties.a.b=x')).map((entity) => (entity as Expected).id)).toEqual([
    'one',
    'two',
  ]);
});

test('a property filter of users finds arrays by their items', async () => {
  await store(
    [
      setProperties('one', [['tags', ['web', 'red, green']]]),
      setProperties('two', [['of', { tags: ['red, green'] }]]),
      setProperties('three', [['tags', [['web']]]]),
    ],
    [0],
  );
  const found = async (filter: string) =>
    (await readAll('user', 10, `&${filter}`)).map((entity) => (entity as Expected).id);
  expect(await found('properties.tags=web')).toEqual(['one']);
  expect(await found('properties.tags=red,%20green')).toEqual(['one']);
  expect(await found('properties.of.tags=red,%20green')).toEqual(['two']);
  expect(await found('properties.tags[ne]=web')).toEqual(['three', 'two']);
});

test.each([
  ['plan=pro', 'ada'],
  ['plan[ne]=pro', 'bob cid dan'],
  ['plan[in]=pro,free', 'ada bob'],
  ['plan[exists]=true', 'ada bob cid'],
  ['plan[exists]=false', 'dan'],
  ['plan[prefix]=p', 'ada'],
  ['plan[contains]=r', 'ada bob'],
  ['plan[gt]=3', 'cid'],
  ['plan[gt]="3"', 'ada bob'],
  ['seats.used[gte]=3&properties.seats.used[lt]=10', 'ada'],
  ['seats.used[in]=3,10', 'ada bob'],
  ['seats.used[ne]=3', 'bob cid dan'],
  ['seats.used[exists]=false', 'cid dan'],
])('properties.%s finds the users %s', async (parameters, expected) => {
  await store(
    [
      setProperties('ada', [
        ['plan', 'pro'],
        ['seats', { used: 3 }],
      ]),
      setProperties('bob', [
        ['plan', 'free'],
        ['seats.used', 10],
      ]),
      setProperties('cid', [['plan', 4]]),
      setProperties('dan', []),
    ],
    [0],
  );
  const found = (await readAll('user', 10, `&properties.${parameters}`)) as Expected[];
  expect(found.map((entity) => entity.id).join(' ')).toBe(expected);
});

test('an organization with the identifier of a deleted user stays', async () => {
  const both = kinds.map(
    (kind): Change => ({ kind, id: 'same', deleted: false, events: [startMs], properties: [['p', 1]] }),
  );
  await store([...both, { kind: 'user', id: 'same', deleted: true, events: [], properties: [] }], [0]);
  expect((await query.get('/users/same')).status).toBe(404);
  expect((await query.get('/organizations/same')).body).toMatchObject({ properties: { p: 1 } });
});

test('a user who came back has the times of what begins after the deletion, also when its events have expired', async () => {
  const deletedUs = Date.UTC(2026, 5, 1) * 1_000;
  const row = (day: number, version: number, other_id: string) => {
    const seenMs = startMs + day * 86_400_000;
    const times = { first_seen_at: seenMs, last_seen_at: seenMs + 1_000 };
    return { workspace_id: 'c', kind: 'user', id: 'back', other_id, ...times, version };
  };
  const timesOf = async (order: string) => {
    const { body } = await query.get(`/users?orderByField=${order}`, 'c');
    expect(body.results).toEqual([(await query.get('/users/back', 'c')).body]);
    return body.results.map(({ firstSeenAt, lastSeenAt }) => [firstSeenAt, lastSeenAt]);
  };
  await query.insert('user_deletions', [{ workspace_id: 'c', user_id: 'back', version: deletedUs }]);
  await query.insert('entities', [row(9, deletedUs + 5, String(deletedUs)), row(3, deletedUs + 7, String(deletedUs))]);
  const since = ['2026-03-04T00:00:00.000Z', '2026-03-10T00:00:01.000Z'];
  for (const order of ['firstSeenAt', 'lastSeenAt']) expect(await timesOf(order)).toEqual([since]);
  // A writer that did not know the deletion has stored it, and its event has expired too: its receipt stands in for it.
  await query.insert('entities', [row(1, deletedUs + 2_000, '')]);
  expect((await query.get('/users/back', 'c')).body).toMatchObject({
    firstSeenAt: since[0],
    lastSeenAt: '2026-06-01T00:00:00.002Z',
  });
});

test('property values are returned as the text that was stored', async () => {
  const text = String.raw`{"n":1e+21,"b":[9007199254740993,-0],"s":"\ud800"}`;
  const entity = { workspace_id: 'd', kind: 'user', id: 'x' };
  await query.insert('entities', [{ ...entity, first_seen_at: startMs, last_seen_at: startMs, version: 5 }]);
  const register = aRegister(5, 'set', text);
  await query.insert('entity_properties', [{ ...entity, property: 'p"q', register }]);
  expect((await query.get('/users/x', 'd')).text).toContain(`"properties":{"p\\"q":${text}}`);
});

const refused = [
  'offset=1',
  'limit=1&limit=2',
  'limit=x',
  'userId=1',
  'cursor=x',
  'properties.a=',
  'properties.a[in]=',
  'properties.a[least]=1',
  'context.a=1',
  'userId[eq]=1',
  'orderBy=id',
];

test.each(['/users', '/organizations'].flatMap((path) => refused.map((parameters) => `${path}?${parameters}`)))(
  '%s is refused',
  async (url) => {
    const { status, body } = await query.get(url);
    expect([status, body.code, body.errors.length]).toEqual([400, 'invalid_request', 1]);
  },
);

test.each(['/users', '/organizations'])('%s clamps its limit, and one of them takes no parameters', async (path) => {
  expect((await query.get(`${path}?limit=2000`)).body.limit).toBe(1_000);
  expect((await query.get(`${path}?limit=0`)).body).toEqual({ limit: 0, results: [], nextCursor: null });
  expect((await query.get(`${path}/x?limit=1`)).status).toBe(400);
});

test.each(['\u{1f600}', "'", '\\', '\0'])('the longest identifiers, of %j, come in one page', async (character) => {
  const ids = Array.from({ length: 150 }, (_, index) => character.repeat(508) + String(index).padStart(4, '0'));
  await query.clickHouse.command({ query: 'TRUNCATE TABLE entities' });
  await query.insert(
    'entities',
    ids.map((one) => ({
      workspace_id: 'e',
      kind: 'user',
      id: one,
      first_seen_at: startMs,
      last_seen_at: startMs,
      version: 5,
    })),
  );
  const { body } = await query.get('/users?limit=1000', 'e');
  expect(body.results?.map(({ foreignId }) => foreignId)).toEqual(ids);
  expect((await query.get(`/users/${encodeURIComponent(String(ids[7]))}`, 'e')).body).toMatchObject({
    foreignId: ids[7],
  });
});
