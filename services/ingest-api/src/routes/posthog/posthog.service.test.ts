import { randomUUID } from 'node:crypto';
import { gzipSync } from 'node:zlib';
import { messageUuid } from '@sluice/submissions/calls/message-uuid';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { type Ingest, startIngest } from '../../testing/ingest.ts';

type Row = Readonly<Record<string, unknown>>;

let ingest: Ingest;

beforeAll(async () => {
  ingest = await startIngest(inject('kafkaBrokers'), {
    EVENT_BYTES_MAX: '20000',
    EVENTS_PER_SUBMISSION_MAX: '50',
    PROPERTIES_PER_SUBMISSION_MAX: '5',
    CORS_ORIGINS: 'https://app.example',
  });
});
afterAll(() => ingest.stop());

interface SendOptions {
  readonly path?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

async function send(body: unknown, { path = '/batch/', headers = {} }: SendOptions = {}) {
  const payload = typeof body === 'string' || Buffer.isBuffer(body) ? body : JSON.stringify(body);
  return await ingest.app.inject({ method: 'POST', url: path, headers: { ...headers }, payload });
}

const TAKEN = [200, '{"status":1}'];

/** Sends events, expects that all are taken, and returns their rows in the order of the events. */
async function taken(...events: readonly Row[]): Promise<Row[]> {
  const marks = events.map(() => randomUUID());
  const batch = events.map((event, index) => ({
    event: 'e',
    ...event,
    properties: { ...(event['properties'] as object | undefined), mark: marks[index] },
  }));
  const response = await send({ api_key: 'all', batch });
  expect([response.statusCode, response.body]).toEqual(TAKEN);
  return await Promise.all(marks.map(rowWithMark));
}

async function rowWithMark(mark: string): Promise<Row> {
  const [row] = await rowsWhere('events', ({ properties }) => (properties as Row | undefined)?.['mark'] === mark);
  return row as Row;
}

async function rowsWhere(topic: 'events' | 'entities', is: (row: Row) => boolean, count = 1): Promise<Row[]> {
  for (let wanted = count; ; wanted += 1) {
    const rows = (await ingest.read(topic, wanted)).flatMap((message) => message.rows);
    const found = rows.filter(is);
    if (found.length >= count) return found;
    wanted = rows.length;
  }
}

async function rejectedOf(event: unknown): Promise<{ index: number; code: string; message: string } | undefined> {
  const response = await send({ api_key: 'all', batch: [event] });
  expect(response.statusCode).toBe(200);
  return response.json().rejected?.[0];
}

describe('an event becomes', () => {
  test('a row with its name, its properties as they were sent, its uuid and its time', async () => {
    const uuid = randomUUID();
    const [row] = await taken({
      event: '$pageview',
      distinct_id: 'ada',
      uuid: uuid.toUpperCase(),
      timestamp: '2026-03-01T12:00:00.123456+00:00',
      properties: { $lib: 'web', $current_url: 'https://a.example/', total: 9.5, list: [1, null] },
      type: 'capture',
      library: 'posthog-node',
      sent_at: '2026-03-02T00:00:00Z',
    });
    expect(row).toEqual({
      workspace_id: 'test',
      event: '$pageview',
      user_id: 'ada',
      uuid,
      timestamp: Date.UTC(2026, 2, 1, 12) + 123,
      properties: {
        ...{ $lib: 'web', $current_url: 'https://a.example/', total: 9.5, list: [1, null] },
        mark: expect.any(String),
      },
      received_at: expect.any(Number),
    });
  });

  test.each(['$pageview', '$pageleave', '$autocapture', '$screen', '$set', 'signed up'])(
    'a row that keeps the name %s',
    async (event) => {
      const [row] = await taken({ event, distinct_id: 'ada' });
      expect(row).toMatchObject({ event, user_id: 'ada' });
      expect(row).not.toHaveProperty('type');
    },
  );

  test('a row of the type identify for $identify, with both identifiers, whatever else it says', async () => {
    const [row] = await taken({
      event: '$identify',
      properties: { distinct_id: 'ada', $anon_distinct_id: 'anon', $is_identified: false },
      $set: { plan: 'pro' },
    });
    expect(row).toMatchObject({
      ...{ type: 'identify', event: 'identify', user_id: 'ada', anonymous_id: 'anon' },
      traits: { plan: 'pro' },
    });
  });

  test('a row of the type group for $groupidentify, which makes no user and sets properties of the organization', async () => {
    const key = randomUUID();
    const [row] = await taken({
      event: '$groupidentify',
      distinct_id: `$company_${key}`,
      properties: { $group_type: 'company', $group_key: key, $group_set: { name: 'Acme', seats: 7, trial: null } },
    });
    expect(row).toMatchObject({
      ...{ type: 'group', event: 'group', group_id: `company:${key}` },
      traits: { name: 'Acme', seats: 7 },
    });
    expect(row).not.toHaveProperty('user_id');
    expect(await rowsWhere('entities', ({ id }) => id === `company:${key}`, 3)).toMatchObject([
      { kind: 'organization', operation: 'set', property: 'name', value: '"Acme"' },
      { kind: 'organization', operation: 'set', property: 'seats', value: '7' },
      { kind: 'organization', operation: 'remove', property: 'trial' },
    ]);
  });

  test('a row of the type alias for $create_alias, of no user, with both identifiers in its properties', async () => {
    const [node, python] = await taken(
      { event: '$create_alias', distinct_id: 'ada', properties: { distinct_id: 'ada', alias: 'anon' } },
      { event: '$create_alias', distinct_id: 'anon', properties: { alias: 'ada' } },
    );
    expect(node).toMatchObject({ type: 'alias', event: 'alias', properties: { distinct_id: 'ada', alias: 'anon' } });
    expect(python).toMatchObject({ type: 'alias', event: 'alias', properties: { distinct_id: 'anon', alias: 'ada' } });
    for (const row of [node, python]) expect(row).not.toHaveProperty('user_id');
    for (const row of [node, python]) expect(row).not.toHaveProperty('group_id');
    const groups = { $groups: { company: 'acme' } };
    const [grouped] = await taken({
      event: '$create_alias',
      distinct_id: 'ada',
      properties: { alias: 'a', ...groups },
    });
    expect(grouped).toMatchObject({ type: 'alias', group_id: 'company:acme' });
  });
});

describe('the distinct_id', () => {
  test('is the user', async () => {
    const [top, inProperties, number] = await taken(
      { distinct_id: 'ada' },
      { properties: { distinct_id: 'bob', $is_identified: true, $device_id: 'd' } },
      { distinct_id: 12 },
    );
    expect([top?.['user_id'], inProperties?.['user_id'], number?.['user_id']]).toEqual(['ada', 'bob', '12']);
    for (const row of [top, inProperties, number]) expect(row).not.toHaveProperty('anonymous_id');
  });

  test('may have another name, and be of any type', async () => {
    const rows = await taken(
      { $distinct_id: 'ada' },
      { distinct_id: true },
      { distinct_id: { a: [1] } },
      { properties: { distinct_id: 7, $groups: [], $set: [], $set_once: [] }, $set: [], $unset: [] },
    );
    expect(rows.map((row) => row['user_id'])).toEqual(['ada', 'true', '{"a":[1]}', '7']);
    expect(
      (await send({ event: 'e', $distinct_id: 'ada', $token: 'all', properties: [] }, { path: '/i/v0/e/' })).body,
    ).toBe('{"status":1}');
  });

  test.each([{ $process_person_profile: false }, { $is_identified: false }, { $device_id: 'visitor' }])(
    'is the anonymous person alone where the properties have %j',
    async (properties) => {
      const user = randomUUID();
      const [row] = await taken({ distinct_id: 'visitor', properties: { ...properties, $set: { [user]: 1 } } });
      expect(row).toMatchObject({ anonymous_id: 'visitor' });
      expect(row).not.toHaveProperty('user_id');
      const [identified] = await taken({ distinct_id: user, $set: { a: 1 } });
      expect(identified).toMatchObject({ user_id: user });
      await rowsWhere('entities', ({ id }) => id === user);
      const changes = (await ingest.read('entities', 1)).flatMap(({ rows }) => rows);
      expect(changes.filter(({ id }) => id === 'visitor')).toEqual([]);
    },
  );
});

test('the first of its groups is the organization, the others stay in the properties', async () => {
  const groups = { company: 'acme', project: 7 };
  const [row, none] = await taken(
    { distinct_id: 'ada', properties: { $groups: groups } },
    { distinct_id: 'ada', properties: { $groups: {} } },
  );
  expect(row).toMatchObject({ group_id: 'company:acme', properties: { $groups: groups } });
  expect(none).not.toHaveProperty('group_id');
});

describe('properties of the user', () => {
  async function changesBy(...events: readonly Row[]): Promise<Row[]> {
    const user = randomUUID();
    await taken(...events.map((event) => ({ distinct_id: user, ...event })), { distinct_id: user, $set: { last: 1 } });
    await rowsWhere('entities', ({ id, property }) => id === user && property === 'last');
    return (await rowsWhere('entities', ({ id }) => id === user)).map(({ operation, property, value }) => ({
      ...{ operation, property },
      ...(value !== undefined && { value }),
    }));
  }
  const last = { operation: 'set', property: 'last', value: '1' };

  test('are set, set once and removed, by an event’s properties and at its top, which counts more', async () => {
    expect(
      await changesBy(
        { $set: { plan: 'pro', old: null }, properties: { $set: { plan: 'free', city: 'Bern' } } },
        { $set_once: { first: 'a', nothing: null }, properties: { $set_once: { second: { b: [1] } } } },
        { properties: { $unset: ['gone'] } },
      ),
    ).toEqual([
      { operation: 'set', property: 'plan', value: '"pro"' },
      { operation: 'set', property: 'city', value: '"Bern"' },
      { operation: 'remove', property: 'old' },
      { operation: 'set_once', property: 'second', value: '{"b":[1]}' },
      { operation: 'set_once', property: 'first', value: '"a"' },
      { operation: 'remove', property: 'gone' },
      last,
    ]);
  });

  test('are changed by events that are named after it', async () => {
    expect(await changesBy({ event: '$set', $set: { a: 1 } }, { event: '$set_once', $set_once: { b: 2 } })).toEqual([
      { operation: 'set', property: 'a', value: '1' },
      { operation: 'set_once', property: 'b', value: '2' },
      last,
    ]);
  });
});

describe('the uuid', () => {
  const event = { distinct_id: 'ada', timestamp: '2026-03-01T12:00:00Z', properties: { a: 1 } };

  test('of an event without one is the same in each retry, and another one for another event', async () => {
    const name = randomUUID();
    const others = [{ distinct_id: 'bob' }, { timestamp: '2026-03-01T12:00:01Z' }, { properties: { a: 2 } }];
    for (const _retry of [1, 2]) {
      const batch = [{}, ...others].map((other) => ({ event: name, ...event, ...other }));
      expect((await send({ api_key: 'all', batch })).body).toBe('{"status":1}');
    }
    const rows = await rowsWhere('events', (row) => row['event'] === name, 8);
    expect(new Set(rows.map(({ uuid }) => uuid)).size).toBe(4);
  });

  test('of each of several equal events in a request is another one, the same in each retry', async () => {
    const name = randomUUID();
    const other = { event: name, ...event, properties: { a: 2 } };
    for (const _retry of [1, 2]) {
      const batch = [{ event: name, ...event }, other, { event: name, ...event }, { event: name, ...event }];
      expect((await send({ api_key: 'all', batch })).body).toBe('{"status":1}');
    }
    const rows = await rowsWhere('events', (row) => row['event'] === name, 8);
    const counts = [...Map.groupBy(rows, ({ uuid }) => uuid).values()].map(({ length }) => length);
    expect(counts).toEqual([2, 2, 2, 2]);
  });

  test('of an event without one and without a timestamp is a new one each time', async () => {
    const name = randomUUID();
    for (const timestamp of [undefined, null, '']) {
      await send({ ...event, event: name, api_key: 'all', timestamp }, { path: '/capture/' });
    }
    const rows = await rowsWhere('events', (row) => row['event'] === name, 3);
    expect(new Set(rows.map(({ uuid }) => uuid)).size).toBe(3);
    for (const row of rows) expect(row).not.toHaveProperty('stamped');
  });

  test.each(['$set', '$set_once', '$unset'])(
    'of an event without one tells apart what it changes by %s',
    async (field) => {
      const name = randomUUID();
      for (const plan of ['free', 'pro', 'pro']) {
        const changes = field === '$unset' ? [plan] : { plan };
        await send({ ...event, event: name, api_key: 'all', [field]: changes }, { path: '/capture/' });
      }
      const rows = await rowsWhere('events', (row) => row['event'] === name, 3);
      expect(new Set(rows.map(({ uuid }) => uuid)).size).toBe(2);
    },
  );

  test('of an event without one does not depend on the key, nor on where the key is', async () => {
    const name = randomUUID();
    await send({ api_key: 'all', batch: [{ event: name, ...event }] });
    await send([{ event: name, ...event, properties: { token: 'ingest-only', a: 1 } }], { path: '/e/' });
    const rows = await rowsWhere('events', (row) => row['event'] === name, 2);
    expect(new Set(rows.map(({ uuid }) => uuid)).size).toBe(1);
  });

  test('never changes', async () => {
    const name = `never-${randomUUID()}`;
    await send({ api_key: 'all', batch: [{ event: name, ...event }] });
    const [row] = await rowsWhere('events', (found) => found['event'] === name);
    const text = ['posthog', 'ada', name, '2026-03-01T12:00:00Z', '{"a":1}'].join('\0');
    expect(row?.['uuid']).toBe(messageUuid('test', text));
  });

  test('gives an event without a timestamp its time when it is a UUIDv7', async () => {
    const [v7, other] = await taken(
      { distinct_id: 'ada', uuid: '018f3c5e-7b1a-7cc0-9d5e-0242ac120002' },
      { distinct_id: 'ada', uuid: randomUUID() },
    );
    expect(v7).toMatchObject({ timestamp: 0x018f3c5e7b1a });
    expect(v7).not.toHaveProperty('stamped');
    expect(other).toMatchObject({ stamped: 1 });
  });
});

describe('the time', () => {
  const DAY_MS = 24 * 60 * 60 * 1_000;

  test('that cannot be read is that of the receipt, and what came stays', async () => {
    const [row] = await taken({ distinct_id: 'ada', timestamp: 'soon' });
    expect(row).toMatchObject({ stamped: 1, context: { sentTimestamp: 'soon' } });
  });

  test.each([
    ['sent_at of the batch', (sent: Date) => ({ body: { sent_at: sent.toISOString() } })],
    ['sentAt of the batch', (sent: Date) => ({ body: { sentAt: sent.toISOString() } })],
    ['_ in the query', (sent: Date) => ({ path: `/e/?_=${sent.getTime()}` })],
    ['sent_at of the event', (sent: Date) => ({ event: { sent_at: sent.toISOString() } })],
  ] as const)('of a clock that is days ahead is corrected by %s', async (_what, sentAt) => {
    const name = randomUUID();
    const { body, path, event }: { body?: Row; path?: string; event?: Row } = sentAt(new Date(Date.now() + 3 * DAY_MS));
    const timestamp = new Date(Date.now() + 3 * DAY_MS - 3_600_000).toISOString();
    const batch = [{ event: name, distinct_id: 'ada', timestamp, ...event }];
    const response = await send({ api_key: 'all', batch, ...body }, path === undefined ? {} : { path });
    expect(response.body).toBe('{"status":1}');
    const [row] = await rowsWhere('events', (found) => found['event'] === name);
    expect(Math.abs(Number(row?.['timestamp']) - (Date.now() - 3_600_000))).toBeLessThan(120_000);
    expect(row).toMatchObject({ context: { sentTimestamp: timestamp } });
  });
});

describe('an event that cannot be taken', () => {
  test.each([
    ['is no object', 1, 'An event must be an object.'],
    ['has no name', { distinct_id: 'a' }, 'event must be a string.'],
    ['has no distinct_id', { event: 'e' }, 'distinct_id is needed.'],
    ['has a distinct_id that is too long', { event: 'e', distinct_id: 'x'.repeat(513) }, 'distinct_id must be at most'],
    ['has properties that are no object', { event: 'e', distinct_id: 'a', properties: [1] }, 'properties must be'],
    ['sets what is no object', { event: 'e', distinct_id: 'a', $set: 1 }, '$set must be an object.'],
    ['removes what is no name', { event: 'e', distinct_id: 'a', $unset: [1] }, '$unset must be an array of names.'],
    ['has groups that are none', { event: 'e', distinct_id: 'a', properties: { $groups: 'acme' } }, '$groups must be'],
    ['names no group', { event: '$groupidentify', distinct_id: 'a' }, '$group_type and $group_key are needed'],
    ['is of the next century', { event: 'e', distinct_id: 'a', timestamp: '2099-01-01' }, 'at most one day from now.'],
    ['sets too much', { event: 'e', distinct_id: 'a', $set: { a: 1, b: 1, c: 1, d: 1, e: 1, f: 1 } }, 'at most 5'],
    ['is too large', { event: 'e', distinct_id: 'a', properties: { p: 'x'.repeat(20_000) } }, 'at most 20000 bytes'],
  ])('because it %s is named and kept, and the others are taken', async (_why, event, message) => {
    expect(await rejectedOf(event)).toMatchObject({ index: 0, message: expect.stringContaining(message) });
    const [row] = await rowsWhere('events', (found) => found['call'] === JSON.stringify(event));
    expect(row).toMatchObject({ workspace_id: 'test', format: 'posthog', reason: expect.stringContaining(message) });
    const name = randomUUID();
    const response = await send({ api_key: 'all', batch: [event, { event: name, distinct_id: 'ada' }] });
    expect(response.json()).toMatchObject({ status: 1, rejectedCount: 1 });
    await rowsWhere('events', (found) => found['event'] === name);
  });

  test.each([
    ['at its top', (user: string) => ({ distinct_id: user })],
    ['under its other name', (user: string) => ({ $distinct_id: user })],
    ['in its properties', (user: string) => ({ properties: { distinct_id: user } })],
  ])('names its user when it has one %s, and never holds the API key', async (_where, event) => {
    const user = randomUUID();
    const sent = { ...event(user), token: 'all', timestamp: '2099-01-01' };
    expect((await send([sent], { path: '/e/' })).json()).toMatchObject({ rejectedCount: 1 });
    const [row] = await rowsWhere('events', (found) => String(found['call']).includes(user));
    expect(row).toMatchObject({ user_id: user });
    expect(JSON.parse(String(row?.['call']))).toEqual({ ...sent, token: '' });
  });

  test.each([
    ['of a later event', '/e/', ''],
    ['in the query', '/e/?api_key=ingest-only', ''],
    ['in the header', '/e/', `Basic ${Buffer.from('ingest-only:').toString('base64')}`],
  ])('holds no API key %s, however it is written', async (_where, path, authorization) => {
    const [name, user] = [randomUUID(), randomUUID()];
    const first = {
      event: 'e',
      distinct_id: 'ada',
      properties: authorization || path !== '/e/' ? {} : { token: 'all' },
    };
    const json = `{"event":"${name}","distinct_id":"${user}","timestamp":"2099-01-01",
      "tok\\u0065n":"other-key","properties":{"api_key":"\\u006fther-key","list":["ingest-onl\\u0079"]}}`;
    const body = Buffer.from(`[${JSON.stringify(first)},${json}]`);
    const response = await send(body, { path, headers: authorization === '' ? {} : { authorization } });
    expect(response.json()).toMatchObject({ rejectedCount: 1 });
    const [row] = await rowsWhere('events', (found) => String(found['call']).includes(user));
    expect(JSON.parse(String(row?.['call']))).toEqual({
      ...{ event: name, distinct_id: user, timestamp: '2099-01-01', token: '' },
      properties: { api_key: '', list: [path === '/e/' && authorization === '' ? 'ingest-only' : ''] },
    });
  });
});

describe('a body', () => {
  const event = { event: 'e', distinct_id: 'ada' };
  const json = JSON.stringify({ api_key: 'all', batch: [event] });
  const form = (text: string) => `data=${encodeURIComponent(Buffer.from(text).toString('base64'))}`;

  test.each(['/batch', '/batch/', '/e', '/e/', '/capture', '/capture/', '/i/v0/e', '/i/v0/e/'])(
    'is taken at %s, with 200 and never 202: a batch, an array, and one event',
    async (path) => {
      for (const body of [
        { api_key: 'all', batch: [event] },
        [{ ...event, api_key: 'all' }],
        { ...event, token: 'all' },
      ]) {
        const response = await send(body, { path: `${path}?retry_count=1` });
        expect([response.statusCode, response.body]).toEqual(TAKEN);
      }
    },
  );

  test.each(['application/json', 'text/plain', 'application/x-www-form-urlencoded', 'nonsense', ''])(
    'may be of the type %j, compressed without saying so, or not',
    async (type) => {
      const headers = type ? { 'content-type': type } : {};
      for (const body of [json, gzipSync(json)]) {
        const response = await send(body, { path: '/e/', headers });
        expect([response.statusCode, response.body]).toEqual(TAKEN);
      }
    },
  );

  test('may say that it is compressed', async () => {
    const headers = { 'content-encoding': 'gzip', 'content-type': 'application/json' };
    expect((await send(gzipSync(json), { headers })).statusCode).toBe(200);
  });

  test.each(['/e/', '/capture/', '/i/v0/e/', '/flags/', '/decide/'])('may be a form at %s', async (path) => {
    const headers = { 'content-type': 'application/x-www-form-urlencoded' };
    // Base64 with a plus, a slash and padding.
    const text = JSON.stringify({ ...event, token: 'all', properties: { text: 'ûÿ¾>>>???' } });
    for (const body of [form(text), `${form(text)}&ip=1`, `data=${encodeURIComponent(text)}`]) {
      const response = await send(body, { path: `${path}?compression=base64`, headers });
      expect(response.statusCode).toBe(200);
    }
  });

  test('that is a form is stored as it would be otherwise', async () => {
    const name = `größer ${randomUUID()}`;
    await send(form(JSON.stringify({ ...event, event: name, token: 'all' })), { path: '/e/' });
    expect(await rowsWhere('events', (row) => row['event'] === name)).toMatchObject([{ user_id: 'ada' }]);
  });

  test('without events is taken', async () => {
    expect((await send({ api_key: 'all', batch: [] })).body).toBe('{"status":1}');
    expect((await send([], { path: '/e/?token=all' })).body).toBe('{"status":1}');
  });

  test.each([
    ['no JSON', '{"batch":[}', 400, 'malformed_json'],
    ['a form that holds none', 'data=%7B', 400, 'malformed_json'],
    ['a form that is none', 'data=%', 400, 'malformed_json'],
    ['empty', '', 400, 'malformed_json'],
    ['not UTF-8', Buffer.from([0x7b, 0xff, 0x7d]), 400, 'malformed_json'],
    ['of too many events', { api_key: 'all', batch: Array.from({ length: 51 }, () => event) }, 413, 'body_too_large'],
  ])('is refused when it is %s', async (_what, body, status, code) => {
    expect((await send(body)).json()).toMatchObject({ status, code, message: expect.any(String) });
  });

  test('may have 2 MB where one event is expected, and in a batch as much as the service takes', async () => {
    const text = (bytes: number) => `{"api_key":"all","batch":[],"x":"${'x'.repeat(bytes)}"}`;
    const rest = text(0).length;
    for (const path of ['/e/', '/capture/', '/i/v0/e/']) {
      expect((await send(text(2_000_000 - rest), { path })).statusCode).toBe(200);
      expect((await send(text(2_000_001 - rest), { path })).json()).toMatchObject({ code: 'body_too_large' });
    }
    expect((await send(text(4 * 1_024 * 1_024 - rest))).statusCode).toBe(200);
    expect((await send(text(4 * 1_024 * 1_024 - rest + 1))).json()).toMatchObject({ status: 413 });
  });
});

describe('the API key', () => {
  const event = { event: 'e', distinct_id: 'ada' };
  const batch = [event];
  const basic = (key: string) => ({ authorization: `Basic ${Buffer.from(`${key}:`).toString('base64')}` });

  test.each([
    ['as api_key of a batch', '/batch/', {}, { api_key: 'all', batch }],
    ['as token of a batch', '/batch/', {}, { token: 'all', batch }],
    ['as api_key of an event', '/e/', {}, { ...event, api_key: 'all' }],
    ['in the properties of an event', '/e/', {}, [{ event: 'e', properties: { token: 'all', distinct_id: 'ada' } }]],
    ['in the query', '/e/?api_key=all', {}, event],
    ['as token in the query', '/e/?token=all', {}, event],
    ['as Bearer', '/batch/', { authorization: 'Bearer all' }, { batch }],
    ['as Basic', '/batch/', basic('all'), { batch }],
  ])('may be sent %s', async (_how, path, headers, body) => {
    expect((await send(body, { path, headers })).body).toBe('{"status":1}');
  });

  test.each([
    ['absent', { batch }],
    ['wrong', { api_key: 'nobody', batch }],
    ['no text', { api_key: { a: 1 }, batch }],
  ])('that is %s gets 401 with the code that the clients know, and what every error has', async (_what, body) => {
    for (const path of ['/batch/', '/e/', '/flags/?v=2', '/decide/']) {
      const response = await send(body, { path });
      expect(response.statusCode).toBe(401);
      expect(response.headers['www-authenticate']).toBe('Bearer');
      expect(response.json()).toMatchObject({
        ...{ type: 'about:blank', title: 'Unauthorized', status: 401, code: 'invalid_api_key' },
        ...{ detail: expect.any(String), message: expect.any(String), requestId: expect.any(String) },
      });
    }
  });

  test('needs its scope', async () => {
    expect((await send({ api_key: 'query-only', batch })).json()).toMatchObject({ status: 403, code: 'missing_scope' });
  });

  test('is not stored', async () => {
    const name = randomUUID();
    const properties = { distinct_id: 'ada', token: 'ingest-only', n: 1, api_key: 'ingest-only' };
    await send([{ event: name, properties }], { path: '/e/' });
    // With an escape, it is parsed rather than kept as text.
    await send([{ event: name, properties: { ...properties, n: '"' } }], { path: '/e/' });
    const rows = await rowsWhere('events', (row) => row['event'] === name, 2);
    // They may be in different partitions.
    expect(rows).toHaveLength(2);
    expect(rows.map((row) => row['properties'])).toEqual(
      expect.arrayContaining([
        { distinct_id: 'ada', n: 1 },
        { distinct_id: 'ada', n: '"' },
      ]),
    );
  });
});
