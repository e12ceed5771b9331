import { setTimeout as wait } from 'node:timers/promises';
import fc from '@sluice/shared/testing/fast-check';
import { parseJson } from '@sluice/shared/text/json';
import { afterAll, beforeAll, beforeEach, expect, inject, test } from 'vitest';
import {
  anEvent,
  DELETIONS_FORGOTTEN_MS,
  type QueryService,
  startQuery,
  type TestEvent,
} from '../../testing/query-service.ts';
import { meets } from '../../testing/reference.ts';
import { SAMPLE_CHARACTERS_MAX, SAMPLE_EVENTS_MAX } from './event-sample.ts';
import { MENU_ENTRIES_MAX, NAME_CHARACTERS_MAX, NAMES_CHARACTERS_MAX } from './menu-entries.ts';

const HOUR_MS = 3_600_000;
const START_MS = Date.UTC(2026, 1, 27, 22);

let query: QueryService;

beforeAll(async () => {
  query = await startQuery(inject('clickhouseUrl'));
});
afterAll(() => query.stop());

beforeEach(async () => {
  for (const table of ['events', 'pending_deletions']) {
    await query.clickHouse.command({ query: `TRUNCATE TABLE ${table}` });
  }
});

interface Menu {
  readonly startDate: string | null;
  readonly endDate: string | null;
  readonly results: readonly Record<string, unknown>[];
  readonly sampledEvents?: number | null;
}

async function menu(path: string, workspace?: string): Promise<Menu> {
  const { status, body } = await query.get(path, workspace);
  expect(status, JSON.stringify(body)).toBe(200);
  return body as unknown as Menu;
}

/** Hides what was received from `ada` until now. */
async function deleteAda(): Promise<void> {
  await query.insert('pending_deletions', [{ workspace_id: 'a', user_id: 'ada', version: 9e15, stored_at: 1 }]);
  await wait(DELETIONS_FORGOTTEN_MS);
}

const iso = (ms: number) => new Date(ms).toISOString();

function byBytes(a: string, b: string): number {
  return Buffer.compare(Buffer.from(a), Buffer.from(b));
}

/** An event of few names, users and times, also at the first and the last millisecond of an hour. */
const storedEvent = fc
  .record({
    event: fc.constantFrom('signed_up', 'signed_in', "é'\\\n", 'opened'),
    type: fc.constantFrom('track', 'page'),
    userId: fc.constantFrom('ada', 'bob', ''),
    hour: fc.integer({ min: 0, max: 5 }),
    ms: fc.constantFrom(0, 1, HOUR_MS / 2, HOUR_MS - 1),
    plan: fc.constantFrom('pro', 'free'),
    // What has 32 bits begins in 1970 and ends in 2106.
    startMs: fc.oneof(
      { weight: 4, arbitrary: fc.constant(START_MS) },
      fc.constantFrom(Date.UTC(1900, 0), Date.UTC(1969, 11, 31, 21), Date.UTC(2200, 5)),
    ),
  })
  .map(({ startMs, hour, ms, plan, ...event }) =>
    anEvent({ ...event, timestampMs: startMs + hour * HOUR_MS + ms, properties: `{"plan":"${plan}"}` }),
  );

const moment = fc
  .tuple(fc.integer({ min: 0, max: 6 }), fc.constantFrom(-1, 0, 1, HOUR_MS / 2))
  .map(([hour, ms]) => START_MS + hour * HOUR_MS + ms);

const selection = fc.record({
  startMs: fc.option(moment, { nil: undefined }),
  endMs: fc.option(moment, { nil: undefined }),
  plan: fc.option(fc.constantFrom('pro', 'free'), { nil: undefined }),
  type: fc.option(fc.constantFrom('track', 'page'), { nil: undefined }),
  prefix: fc.constantFrom('', 'signed_', 'é'),
});

test('names are exact, of any range and filter, and without what is hidden', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(storedEvent, { minLength: 30, maxLength: 60, size: 'max' }),
      fc.boolean(),
      fc.array(selection, { minLength: 6, maxLength: 6 }),
      async (events, hides, selections) => {
        for (const table of ['events', 'pending_deletions']) {
          await query.clickHouse.command({ query: `TRUNCATE TABLE ${table}` });
        }
        await query.store('a', events.slice(0, 25));
        await query.store('a', events.slice(25));
        if (hides) await deleteAda();
        else await wait(DELETIONS_FORGOTTEN_MS);
        for (const one of selections) {
          const { startMs = Number.NEGATIVE_INFINITY, endMs = Number.POSITIVE_INFINITY, plan, type, prefix } = one;
          if (startMs > endMs) continue;
          const selected = events.filter(
            ({ timestampMs, userId, properties, ...event }) =>
              timestampMs >= startMs &&
              timestampMs <= endMs &&
              !(hides && userId === 'ada') &&
              event.event.startsWith(prefix) &&
              (type === undefined || event.type === type) &&
              (plan === undefined || properties.includes(plan)),
          );
          const parameters = new URLSearchParams({
            ...(one.startMs !== undefined && { startDate: iso(one.startMs) }),
            ...(one.endMs !== undefined && { endDate: iso(one.endMs) }),
            ...(plan !== undefined && { 'properties.plan': plan }),
            ...(type !== undefined && { type }),
            ...(prefix !== '' && { prefix }),
          });
          const { results } = await menu(`/events/names?${parameters}`);
          expect(results).toEqual(foldNames(selected));
          const { results: values } = await menu(`/events/values?property=event&${parameters}`);
          expect(values).toEqual(foldValues(selected.map(({ event }) => [event])));
        }
      },
    ),
    // To shrink it would take longer than the test may.
    { numRuns: 3, endOnFailure: true },
  );
});

test('the first and the last time of a name may be in any century', async () => {
  const times = [
    '1900-01-01T00:30:00.000Z',
    '1969-12-31T23:30:00.000Z',
    iso(START_MS),
    '2250-01-01T00:00:00.000Z',
  ] as const;
  await query.store(
    'a',
    times.map((time) => anEvent({ timestampMs: Date.parse(time) })),
  );
  const expected = [{ event: 'e', type: 'track', count: 4, firstSeenAt: times[0], lastSeenAt: times[3] }];
  // ClickHouse compiles what it has run a few times.
  for (let run = 0; run < 5; run += 1) {
    for (const filter of ['', '?startDate=1900-01-01', '?userId[exists]=false']) {
      expect([run, filter, (await menu(`/events/names${filter}`)).results]).toEqual([run, filter, expected]);
    }
  }
});

test('the first and the last time of a name are not those of hidden events', async () => {
  const at = (hours: number, userId: string) => anEvent({ timestampMs: START_MS + hours * HOUR_MS, userId });
  const shown = [at(1, 'bob'), at(4, 'bob')];
  await query.store('a', [at(0, 'ada'), ...shown, at(5, 'ada')]);
  await deleteAda();
  expect((await menu('/events/names')).results).toEqual(foldNames(shown));
});

function foldNames(events: readonly TestEvent[]): Record<string, unknown>[] {
  const groups = Map.groupBy(events, ({ event, type }) => JSON.stringify([event, type]));
  return [...groups.values()]
    .map((group) => {
      const times = group.map(({ timestampMs }) => timestampMs);
      const { event, type } = group[0] as TestEvent;
      const [firstSeenAt, lastSeenAt] = [iso(Math.min(...times)), iso(Math.max(...times))];
      return { event, type, count: group.length, firstSeenAt, lastSeenAt };
    })
    .sort((a, b) => b.count - a.count || byBytes(a.event, b.event) || byBytes(a.type, b.type));
}

/** Counts the values of events; those of one event once. */
function foldValues(events: readonly (readonly unknown[])[]): Record<string, unknown>[] {
  const counts = new Map<string, number>();
  for (const values of events) {
    for (const json of new Set(values.map((value) => JSON.stringify(value)))) {
      counts.set(json, (counts.get(json) ?? 0) + 1);
    }
  }
  const text = (value: unknown) => (typeof value === 'string' ? value : JSON.stringify(value));
  return [...counts]
    .map(([json, count]) => ({ value: parseJson(json), count, json }))
    .sort((a, b) => b.count - a.count || byBytes(text(a.value), text(b.value)) || byBytes(a.json, b.json))
    .map(({ value, count }) => ({ value, count }));
}

const HOSTILE_NAMES = [
  'a',
  'b',
  'a.b',
  '',
  '__proto__',
  'constructor',
  '"',
  '\\',
  "'",
  'ä',
  '\u{1f600}',
  '\ud800',
  'x[lt]',
];

const { document } = fc.letrec<{ document: Record<string, unknown>; value: unknown }>((tie) => ({
  document: fc
    .array(fc.tuple(fc.constantFrom(...HOSTILE_NAMES), tie('value')), { maxLength: 4 })
    .map((entries) => Object.fromEntries(entries)),
  value: fc.oneof(
    { maxDepth: 3 },
    fc.constantFrom<unknown>(1, 1.5, -0.25, '1', 'pro', '', '\ud800', '\0', true, false, null, [], {}),
    fc.array(fc.constantFrom<unknown>('pro', 1, null, ['pro'], { a: 1 }), { maxLength: 3 }),
    tie('document'),
  ),
}));

test('properties and values are those of the newest events, whatever their names', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(document, { minLength: 1, maxLength: 12 }), async (documents) => {
      await query.clickHouse.command({ query: 'TRUNCATE TABLE events' });
      await query.store(
        'a',
        documents.map((properties, index) =>
          anEvent({ properties: JSON.stringify(properties), timestampMs: START_MS + index }),
        ),
      );
      const { results, sampledEvents } = await menu('/events/properties?limit=1000');
      expect(sampledEvents).toBe(documents.length);
      expect(results).toEqual(foldPaths(documents));
      for (const { path, share } of results) {
        const name = String(path).slice('properties.'.length);
        const has = documents.filter((one) =>
          meets(parseJson(JSON.stringify(one)), name, { operator: 'exists', value: true }),
        );
        expect(share).toBe(has.length / documents.length);
        if (!name.isWellFormed()) continue;
        const values = await menu(`/events/values?limit=1000&property=${encodeURIComponent(String(path))}`);
        expect(values.sampledEvents).toBe(documents.length);
        expect(values.results).toEqual(foldValues(documents.map((one) => itemsAt(one, name))));
      }
    }),
    // A name that means two places of one event.
    { numRuns: 6, examples: [[[{ a: { b: 1 }, 'a.b': 'x' }, {}]]] },
  );
});

/** The value of a key, also one that an object inherits no value of. */
function own(object: object, key: string): unknown {
  return Object.getOwnPropertyDescriptor(object, key)?.value;
}

/** All ways in which keys, joined by dots, lead to a value. */
function* pathsOf(value: unknown): Generator<readonly [name: string, value: unknown]> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return;
  for (const key of Object.getOwnPropertyNames(value)) {
    yield [key, own(value, key)];
    for (const [name, inner] of pathsOf(own(value, key))) yield [`${key}.${name}`, inner];
  }
}

function foldPaths(documents: readonly unknown[]): Record<string, unknown>[] {
  const found = new Map<string, { types: Set<string>; events: Set<number> }>();
  for (const [index, one] of documents.entries()) {
    for (const [name, value] of pathsOf(one)) {
      if (name.split('.').length > 7) continue;
      const entry = found.get(name) ?? { types: new Set(), events: new Set() };
      entry.types.add(value === null ? 'null' : Array.isArray(value) ? 'array' : typeof value);
      entry.events.add(index);
      found.set(name, entry);
    }
  }
  return [...found]
    .map(([name, { types, events }]) => ({
      path: `properties.${name}`,
      types: [...types].sort(),
      share: events.size / documents.length,
      lastSeenAt: iso(START_MS + Math.max(...events)),
    }))
    .sort((a, b) => b.share - a.share || byBytes(a.path, b.path));
}

function itemsAt(document: unknown, name: string): unknown[] {
  const values = [...pathsOf(document)].filter(([one]) => one === name).map(([, value]) => value);
  return values.flatMap((value) => (Array.isArray(value) ? [value, ...(value as unknown[])] : [value]));
}

test('the count of a value is the number of events that a filter by it finds', async () => {
  const documents = ['{"tag":"x"}', '{"tag":["x","x","y"]}', '{"a.tag":1,"a":{"tag":1}}', '{"a":{"tag":2}}', '{}'];
  await query.store(
    'a',
    documents.map((properties) => anEvent({ properties })),
  );
  for (const property of ['properties.tag', 'properties.a.tag', 'properties.a']) {
    const { results } = await menu(`/events/values?property=${property}`);
    expect(results.length).toBeGreaterThan(0);
    for (const { value, count } of results) {
      const text = typeof value === 'string' ? value : JSON.stringify(value);
      const { body } = await query.get(`/events?limit=0&${property}=${encodeURIComponent(text)}`);
      expect([property, value, count]).toEqual([property, value, body.total]);
    }
  }
});

test('numbers keep all their digits and differ from text', async () => {
  const numbers = [
    '3.141592653589793238',
    '9007199254740993.0',
    '18446744073709551616',
    '9007199254740993',
    '9007199254740992',
    '-12345678901234567890123',
    '0.1234567890123456789',
    '-0',
    '1e21',
  ];
  const documents = [...numbers.map((n) => `{"n":${n}}`), '{"n":"9007199254740993"}', '{"n":[9007199254740993]}'];
  await query.store(
    'a',
    documents.map((properties) => anEvent({ properties })),
  );
  const { text } = await query.get('/events/values?property=properties.n');
  expect(text).toContain('{"value":9007199254740993,"count":2}');
  expect(text).toContain('{"value":"9007199254740993","count":1}');
  expect(text).toContain('{"value":[9007199254740993],"count":1}');
  for (const number of numbers.filter((one) => !['9007199254740993', '-0', '1e21'].includes(one))) {
    expect(text).toContain(`{"value":${number},"count":1}`);
  }
  for (const number of ['3.141592653589793238', '18446744073709551616', '-12345678901234567890123', '0']) {
    const { body } = await query.get(`/events?limit=0&properties.n=${number}`);
    expect([number, body.total]).toEqual([number, 1]);
  }
  const inside = await menu('/events/values?property=properties.n.rawJSON');
  expect(inside.results).toEqual([]);
  const { results } = await menu('/events/values?property=properties.n&prefix=90071992547409');
  expect(results).toHaveLength(4);
});

test('events of deleted users count in no menu, from the deletion on', async () => {
  const ada = { userId: 'ada', event: 'left', timestampMs: START_MS, properties: '{"secret":"s"}' };
  await query.store('a', [anEvent(ada), anEvent({ userId: 'bob', properties: '{"plan":"pro"}' })]);
  expect((await menu('/events/names')).results).toHaveLength(2);
  await deleteAda();
  for (const path of [
    'names?',
    'values?property=event',
    'values?property=userId',
    'properties?',
    'values?property=properties.secret',
  ]) {
    const { text } = await query.get(`/events/${path}`);
    expect(text).not.toMatch(/ada|left|secret|"s"/);
  }
  expect((await menu('/events/properties')).sampledEvents).toBe(1);
});

test('a sample is of the newest events, and says of how many', async () => {
  await query.clickHouse.command({
    query: `INSERT INTO events (workspace_id, timestamp, uuid, event, user_id, properties, received_at)
      SELECT 'a', fromUnixTimestamp64Milli({start:Int64} + number), generateUUIDv4(number), 'e',
        if(number % 4 = 0, '', toString(number % 3)), if(number < 5, '{"old":1}', '{"n":1}'), now64(6)
      FROM numbers({rows:UInt64})`,
    query_params: { start: START_MS, rows: SAMPLE_EVENTS_MAX + 5 },
  });
  expect(await menu('/events/properties')).toMatchObject({
    results: [{ path: 'properties.n', types: ['number'], share: 1, lastSeenAt: iso(START_MS + SAMPLE_EVENTS_MAX + 4) }],
    sampledEvents: SAMPLE_EVENTS_MAX,
  });
  const users = await menu('/events/values?property=userId');
  expect(users.sampledEvents).toBe(SAMPLE_EVENTS_MAX);
  expect(users.results.map(({ value }) => value).sort()).toEqual(['0', '1', '2']);
  expect(users.results.reduce((sum, { count }) => sum + Number(count), 0)).toBe(SAMPLE_EVENTS_MAX * 0.75);
  const types = await menu('/events/values?property=type');
  expect(types).toMatchObject({ results: [{ value: 'track', count: SAMPLE_EVENTS_MAX + 5 }], sampledEvents: null });
  const oldest = await menu(`/events/properties?endDate=${iso(START_MS + 4)}`);
  expect(oldest).toMatchObject({ results: [{ path: 'properties.old' }], sampledEvents: 5 });
});

test('a sample of large events ends earlier', async () => {
  const properties = JSON.stringify({ text: 'x'.repeat(SAMPLE_CHARACTERS_MAX / 8 - 11) });
  await query.store(
    'a',
    Array.from({ length: 10 }, (_, index) => anEvent({ properties, timestampMs: START_MS + index })),
  );
  expect(await menu('/events/properties')).toMatchObject({ results: [{ share: 1 }], sampledEvents: 8 });
});

test('a sample with very many names ends earlier', async () => {
  const documents = Array.from({ length: 12 }, (_, event) =>
    Object.fromEntries(Array.from({ length: MENU_ENTRIES_MAX / 10 }, (_, index) => [`n${event}_${index}`, 1])),
  );
  await query.store(
    'a',
    documents.map((one, index) => anEvent({ properties: JSON.stringify(one), timestampMs: START_MS + index })),
  );
  const { results, sampledEvents } = await menu('/events/properties?limit=1');
  expect([results.length, sampledEvents]).toEqual([1, 10]);
});

test('names inside a very long name are left out with it, whatever they would be together', async () => {
  const many = Object.fromEntries(Array.from({ length: 9_000 }, (_, index) => [`n${index}`, 1]));
  const longest = 'x'.repeat(NAME_CHARACTERS_MAX);
  // Six dots are as many as a filter may have.
  const deep = parseJson('{"b":{"c":{"d":{"e":{"f":{"g":{"h":1}}}}}}}');
  const properties = { ['y'.repeat(120_000)]: many, [longest]: { n: 1 }, a: deep };
  await query.store('a', [anEvent({ properties: JSON.stringify(properties) })]);
  const { results, sampledEvents } = await menu('/events/properties');
  const names = [...'abcdefg'].map((_, index) => 'a.b.c.d.e.f.g'.slice(0, 2 * index + 1));
  expect(results.map(({ path }) => path)).toEqual([...names, longest].map((name) => `properties.${name}`));
  expect(sampledEvents).toBe(1);
});

test('a sample whose names are long together ends earlier', async () => {
  const many = Object.fromEntries(Array.from({ length: 9_000 }, (_, index) => [`n${index + 1_000}`, 1]));
  const outer = 'x'.repeat(NAME_CHARACTERS_MAX - 6);
  const properties = JSON.stringify({ [outer]: many });
  const events = Math.ceil(NAMES_CHARACTERS_MAX / (9_000 * (NAME_CHARACTERS_MAX - 1)));
  await query.store(
    'a',
    Array.from({ length: events + 2 }, () => anEvent({ properties })),
  );
  expect(await menu('/events/properties?limit=1')).toMatchObject({ results: [{ share: 1 }], sampledEvents: events });
});

test('the first of very many values are those of most events, then of the first bytes', async () => {
  const values = Array.from({ length: 9_999 }, (_, index) => (index % 2 ? `\u{1f600}${index}` : `\uffff${index}`));
  const documents = Array.from({ length: 3 }, (_, event) => values.map((value) => `${value}-${event}`));
  await query.store('a', [
    ...documents.map((n) => anEvent({ properties: JSON.stringify({ n }) })),
    anEvent({ properties: '{"n":"last"}' }),
    anEvent({ properties: '{"n":"last"}' }),
  ]);
  const { results } = await menu('/events/values?property=properties.n&limit=1000');
  const expected = documents.flat().concat(documents.map((items) => JSON.stringify(items)));
  expect(results.map(({ value }) => (typeof value === 'string' ? value : JSON.stringify(value)))).toEqual([
    'last',
    ...expected.sort(byBytes).slice(0, 999),
  ]);
});

test('a prefix of paths may leave out that they are properties', async () => {
  await query.store('a', [anEvent({ properties: '{"address":{"city":"Bern"},"amount":1,"plan":"pro"}' })]);
  for (const [prefix, paths] of [
    ['a', ['address', 'address.city', 'amount']],
    ['properties.a', ['address', 'address.city', 'amount']],
    ['address.', ['address.city']],
    ['A', []],
  ] as const) {
    const { results } = await menu(`/events/properties?prefix=${prefix}`);
    expect(results.map(({ path }) => path)).toEqual(paths.map((path) => `properties.${path}`));
  }
});

test('a workspace sees its own events only, and an empty one has empty menus', async () => {
  await query.store('b', [anEvent({ properties: '{"plan":"pro"}' })]);
  const none = { startDate: null, endDate: null, results: [] };
  expect(await menu('/events/names')).toEqual(none);
  expect(await menu('/events/properties')).toEqual({ ...none, sampledEvents: 0 });
  expect(await menu('/events/values?property=properties.plan')).toEqual({ ...none, sampledEvents: 0 });
  expect(await menu('/events/values?property=type')).toEqual({ ...none, sampledEvents: null });
  expect((await menu('/events/names', 'b')).results).toHaveLength(1);
});

test('the dates that were applied are repeated in UTC, and the first results are returned', async () => {
  await query.store(
    'a',
    ['x', 'y', 'y', 'z', 'z'].map((event) => anEvent({ event })),
  );
  expect(await menu('/events/names?limit=1&startDate=2026-02-01&endDate=2026-03-01')).toMatchObject({
    startDate: '2026-02-01T00:00:00.000Z',
    endDate: '2026-03-01T23:59:59.999Z',
    results: [{ event: 'y', count: 2 }],
  });
  expect((await menu('/events/values?property=event&limit=2')).results).toEqual([
    { value: 'y', count: 2 },
    { value: 'z', count: 2 },
  ]);
});

test.each([
  ['/events/names?limit=0', ['limit']],
  ['/events/names?limit=1001&colour=red', ['limit', 'colour']],
  ['/events/names?cursor=x&total=none', ['cursor', 'total']],
  ['/events/names?startDate=2026-02-02&endDate=2026-02-01', ['startDate']],
  ['/events/properties?limit=x&event[like]=y', ['limit', 'event[like]']],
  ['/events/properties?property=properties.plan', ['property']],
  ['/events/values', ['property']],
  ['/events/values?limit=0', ['limit', 'property']],
  ['/events/values?property=plan', ['property']],
  ['/events/values?property=', ['property']],
  ['/events/values?property=timestamp', ['property']],
  ['/events/values?property=__proto__', ['property']],
  ['/events/values?property=properties.a.b.c.d.e.f.g.h', ['property']],
  ['/events/values?property=type&property=event', ['property']],
])('%s is refused with every error', async (path, errors) => {
  const { status, body } = await query.get(path);
  expect(status).toBe(400);
  expect(body.errors.map(({ path }) => path)).toEqual(errors);
});
