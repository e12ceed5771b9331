import { randomUUID } from 'node:crypto';
import { gzipSync } from 'node:zlib';
import { sleep } from '@sluice/shared/base/retry';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { type Ingest, startIngest } from '../testing/ingest.ts';

type Row = Readonly<Record<string, unknown>>;

let ingest: Ingest;

beforeAll(async () => {
  ingest = await startIngest(inject('kafkaBrokers'), {
    BODY_BYTES_MAX: '700000',
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

async function send(body: unknown, { path = '/v1/batch', headers }: SendOptions = {}) {
  return await ingest.app.inject({
    method: 'POST',
    url: path,
    headers: headers ?? { authorization: 'Bearer all' },
    payload: typeof body === 'string' || Buffer.isBuffer(body) ? body : JSON.stringify(body),
  });
}

/** Sends calls, expects that all are taken, and returns their rows in the order of the calls. */
async function taken(...calls: readonly Row[]): Promise<Row[]> {
  const marks = calls.map(() => randomUUID());
  const marked = calls.map((call, index) => ({
    ...call,
    context: { ...(call['context'] as object | undefined), mark: marks[index] },
  }));
  const response = await send({ batch: marked });
  expect([response.statusCode, response.body]).toEqual([200, '{"success":true}']);
  const isMarked = (row: Row, mark: string | undefined) => (row['context'] as Row | undefined)?.['mark'] === mark;
  const rows = await rowsWhere('events', (row) => marks.some((mark) => isMarked(row, mark)), calls.length);
  return marks.map((mark) => rows.find((row) => isMarked(row, mark)) as Row);
}

async function rowsWhere(topic: 'events' | 'entities', is: (row: Row) => boolean, count = 1): Promise<Row[]> {
  for (let wanted = count; ; wanted += 1) {
    const rows = (await ingest.read(topic, wanted)).flatMap((message) => message.rows);
    const found = rows.filter(is);
    if (found.length >= count) return found;
    wanted = rows.length;
  }
}

async function rejectedOf(call: unknown): Promise<{ index: number; code: string; message: string } | undefined> {
  const response = await send({ batch: [call] });
  expect(response.statusCode).toBe(200);
  return response.json().rejected?.[0];
}

describe('each call becomes', () => {
  test('a track call: an event with everything as it was sent', async () => {
    const [row] = await taken({
      type: 'track',
      event: 'Order Completed',
      userId: 'ada',
      anonymousId: 'anon',
      properties: { total: 9.5, list: [1, null] },
      context: { groupId: 'acme', ip: '8.8.8.8' },
      timestamp: '2026-03-01T12:00:00.000Z',
      integrations: { All: false },
      _metadata: {},
      sentAt: '2026-03-01T12:00:01.000Z',
    });
    expect(row).toMatchObject({
      workspace_id: 'test',
      event: 'Order Completed',
      user_id: 'ada',
      anonymous_id: 'anon',
      group_id: 'acme',
      properties: { total: 9.5, list: [1, null] },
      context: { groupId: 'acme', ip: '8.8.8.8' },
      timestamp: Date.UTC(2026, 2, 1, 12),
    });
    expect(row).not.toHaveProperty('type');
    expect(Object.keys((row as Row)['context'] as object)).toEqual(['groupId', 'ip', 'mark']);
  });

  test('an identify call: an event, and properties of the user', async () => {
    const user = randomUUID();
    const [row] = await taken({ type: 'identify', userId: user, traits: { name: 'Ada', age: 36, trial: null } });
    expect(row).toMatchObject({ type: 'identify', event: 'identify', user_id: user, traits: { name: 'Ada' } });
    const changes = await rowsWhere('entities', ({ id }) => id === user, 3);
    expect(changes).toMatchObject([
      { kind: 'user', operation: 'set', property: 'name', value: '"Ada"' },
      { kind: 'user', operation: 'set', property: 'age', value: '36' },
      { kind: 'user', operation: 'remove', property: 'trial' },
    ]);
  });

  test('an identify call without traits of its own: those of its context', async () => {
    const user = randomUUID();
    const [row] = await taken({ type: 'identify', userId: user, context: { traits: { plan: 'pro' } } });
    expect(row).toMatchObject({ traits: { plan: 'pro' } });
    expect(await rowsWhere('entities', ({ id }) => id === user)).toMatchObject([{ property: 'plan', value: '"pro"' }]);
  });

  test('an identify call of a stranger: the event alone', async () => {
    const [row] = await taken({ type: 'identify', anonymousId: 'anon', traits: { plan: 'pro' } });
    expect(row).toMatchObject({ type: 'identify', anonymous_id: 'anon', traits: { plan: 'pro' } });
  });

  test('a group call: an event with user and organization, and properties of the organization', async () => {
    const group = randomUUID();
    const [row] = await taken({ type: 'group', userId: 'ada', groupId: group, traits: { name: 'Acme' } });
    expect(row).toMatchObject({ type: 'group', event: 'group', user_id: 'ada', group_id: group });
    expect(await rowsWhere('entities', ({ id }) => id === group)).toMatchObject([
      { kind: 'organization', operation: 'set', property: 'name', value: '"Acme"' },
    ]);
  });

  test.each(['page', 'screen'])('a %s call: an event with its name, which is in its properties, too', async (type) => {
    const common = { type, anonymousId: 'anon' };
    const rows = await taken(
      { ...common, name: 'Home', category: 'Docs', properties: { name: 'Own', url: '/' } },
      { ...common, name: 'Home', category: 'Docs' },
      common,
    );
    expect(rows).toMatchObject([
      { type, event: 'Home', properties: { name: 'Own', category: 'Docs', url: '/' } },
      { type, event: 'Home', properties: { name: 'Home', category: 'Docs' } },
      { type, event: type },
    ]);
    expect(rows[2]).not.toHaveProperty('properties');
  });

  test('an alias call: an event with the identifier before', async () => {
    const [row] = await taken({ type: 'alias', userId: 'ada', previousId: 'anon' });
    expect(row).toMatchObject({ type: 'alias', event: 'alias', user_id: 'ada', properties: { previousId: 'anon' } });
  });
});

describe('an event', () => {
  const track = { type: 'track', event: 'e', userId: 'ada' };

  test('has the messageId as its uuid when that is one', async () => {
    const messageId = randomUUID();
    const [row] = await taken({ ...track, messageId: messageId.toUpperCase() });
    expect(row).toMatchObject({ uuid: messageId, stamped: 1 });
    expect((row as Row)['context']).not.toHaveProperty('messageId');
  });

  test('has a uuid of the whole messageId when that is none, the same each time', async () => {
    const messageId = `node-next-1772366400000-${randomUUID()}`;
    const [one, again, other] = await taken(
      { ...track, messageId },
      { ...track, messageId },
      { ...track, messageId: `${messageId}x`, context: { messageId: 'own' } },
    );
    expect(one).toMatchObject({ timestamp: 1772366400000, context: { messageId } });
    expect(one).not.toHaveProperty('stamped');
    expect(again?.['uuid']).toBe(one?.['uuid']);
    expect(other?.['uuid']).not.toBe(one?.['uuid']);
    expect(other).toMatchObject({ context: { messageId: 'own' } });
  });

  test('has the first of its times', async () => {
    const begunMs = Date.now();
    const [microseconds, original, before2000, none] = await taken(
      { ...track, timestamp: '2026-03-01T12:00:00.123456+00:00', originalTimestamp: '2026-01-01T00:00:00Z' },
      { ...track, timestamp: null, originalTimestamp: '2026-01-01T00:00:00Z' },
      { ...track, messageId: '00000000-0000-7000-8000-000000000000' },
      track,
    );
    expect(microseconds).toMatchObject({ timestamp: Date.UTC(2026, 2, 1, 12) + 123 });
    expect(original).toMatchObject({ timestamp: Date.UTC(2026, 0, 1) });
    expect(before2000).toMatchObject({ stamped: 1 });
    expect(Number(before2000?.['timestamp'])).toBeGreaterThanOrEqual(begunMs - 1);
    expect(Number(before2000?.['timestamp'])).toBeLessThanOrEqual(Date.now() + 1);
    expect(none).not.toHaveProperty('stamped');
  });

  test('whose clock is a day ahead has its own time once it is taken', async () => {
    const [event, timestamp] = [randomUUID(), Date.now() + 24 * 60 * 60 * 1_000 + 2_000];
    const call = { ...track, event, messageId: event, timestamp: new Date(timestamp).toISOString() };
    expect(await rejectedOf(call)).toMatchObject({ message: 'timestamp must be at most one day from now.' });
    while ((await rejectedOf(call)) !== undefined) await sleep(100);
    await taken(track);
    expect(await rowsWhere('events', (row) => row['event'] === event)).toMatchObject([{ timestamp }]);
  });

  test('may have numbers as identifiers, and empty ones', async () => {
    const [row] = await taken({ ...track, userId: 12345678901234567000, anonymousId: '', groupId: null });
    expect(row).toMatchObject({ user_id: '12345678901234567000' });
    expect(row).not.toHaveProperty('anonymous_id');
  });

  test.each([
    ['2026-11-20T16:00:27.029:Z', '2026-11-20T16:00:27.029:Z'],
    ['1970-01-01T00:00:00Z', '1970-01-01T00:00:00Z'],
    ['', undefined],
    [{ date: 1 }, '{"date":1}'],
    [true, 'true'],
  ])('whose time is %j has that of its receipt, and what came in its context', async (timestamp, kept) => {
    const begunMs = Date.now();
    const [own, others] = await taken(
      { ...track, timestamp, messageId: `unreadable ${randomUUID()}` },
      { ...track, timestamp, messageId: randomUUID(), originalTimestamp: '2026-03-01T12:00:00Z' },
    );
    expect(own).toMatchObject({ stamped: 1 });
    expect(Number(own?.['timestamp'])).toBeGreaterThanOrEqual(begunMs - 1);
    expect(others).toMatchObject({ timestamp: Date.UTC(2026, 2, 1, 12) });
    const contexts = [own, others].map((row) => row?.['context'] as Row | undefined);
    for (const context of contexts) expect(context?.['sentTimestamp']).toBe(kept);
  });

  test('may have its time as a number', async () => {
    const rows = await taken(
      { ...track, timestamp: 1772366400 },
      { ...track, timestamp: 1772366400.5 },
      { ...track, timestamp: '1772366400000' },
    );
    expect(rows.map((row) => row['timestamp'])).toEqual([1772366400000, 1772366400500, 1772366400000]);
  });

  test.each([
    ['three days ahead', 3 * 24 * 60 * 60 * 1_000],
    ['at 1970', -Date.now()],
  ])('of a device whose clock is %s, as its sentAt says, is corrected by that', async (_when, offMs) => {
    const deviceMs = Date.now() + offMs;
    const time = (agoMs: number) => new Date(deviceMs - agoMs).toISOString();
    const event = randomUUID();
    const calls = [2_000, 3_600_000, 7_200_000].map((agoMs) => {
      return { ...track, event, messageId: `${event} ${agoMs}`, timestamp: time(agoMs) };
    });
    for (const sent of [0, 40]) {
      const response = await send({ batch: calls, sentAt: time(-sent) });
      expect(response.body).toBe('{"success":true}');
    }
    const rows = await rowsWhere('events', (row) => row['event'] === event, 6);
    const byUuid = Map.groupBy(rows, ({ uuid }) => uuid);
    expect(byUuid.size).toBe(3);
    for (const row of rows) {
      const { messageId, sentTimestamp } = row['context'] as { messageId: string; sentTimestamp: string };
      const agoMs = Number(messageId.split(' ')[1]);
      expect(sentTimestamp).toBe(time(agoMs));
      // By whole minutes, so that a repeat has the same time, or is stamped.
      expect(Math.abs(Number(row['timestamp']) - (Date.now() - agoMs))).toBeLessThan(120_000);
      expect(row['stamped']).toBe(agoMs === 2_000 ? 1 : undefined);
    }
  });

  test('whose clock is ahead is not corrected by a sentAt that is right', async () => {
    const ahead = new Date(Date.now() + 3 * 24 * 60 * 60 * 1_000).toISOString();
    const call = { ...track, timestamp: ahead, sentAt: new Date().toISOString() };
    expect(await rejectedOf(call)).toMatchObject({ message: 'timestamp must be at most one day from now.' });
  });

  test('may have empty arrays where PHP means empty objects', async () => {
    const event = randomUUID();
    const call = { type: 'identify', userId: event, properties: [], traits: [], context: [], integrations: [] };
    expect((await send({ batch: [call, { ...track, event }], context: [] })).body).toBe('{"success":true}');
    const rows = await rowsWhere('events', (row) => row['user_id'] === event || row['event'] === event, 2);
    expect(rows).toHaveLength(2);
  });

  test('may have booleans as identifiers, and other scalars as its name', async () => {
    const [row, screen] = await taken(
      { ...track, event: 404, userId: true, anonymousId: 1.5, groupId: false },
      { type: 'screen', userId: 'ada', event: 'Home', properties: { name: 'Home' } },
    );
    expect(row).toMatchObject({ event: '404', user_id: 'true', anonymous_id: '1.5', group_id: 'false' });
    expect(screen).toMatchObject({ type: 'screen', event: 'Home' });
  });

  test('keeps every digit of a number as an identifier', async () => {
    const event = randomUUID();
    const calls = ['12345678901234567891', '12345678901234567892', '-0', '5.0', '1e400'].map(
      (userId) => `{"type":"track","event":"${event}","userId":${userId}}`,
    );
    const response = await send(`{"batch":[${calls.join(',')}]}`);
    const message = 'userId is a number that is too large for a 64-bit float.';
    expect(response.json()).toMatchObject({ rejected: [{ index: 4, code: 'invalid_call', message }] });
    const rows = await rowsWhere('events', (row) => row['event'] === event, 4);
    expect(rows.map((row) => row['user_id']).sort()).toEqual([
      '0',
      '12345678901234567891',
      '12345678901234567892',
      '5',
    ]);
  });

  test('has the context of its batch under its own', async () => {
    const mark = randomUUID();
    const body = { batch: [{ ...track, context: { a: 1, mark } }], context: { a: 2, b: 2, ['__proto__']: 3 } };
    expect((await send(body)).statusCode).toBe(200);
    const [row] = await rowsWhere('events', (found) => (found['context'] as Row | undefined)?.['mark'] === mark);
    expect((row as Row)['context']).toEqual(JSON.parse(`{"a":1,"b":2,"__proto__":3,"mark":"${mark}"}`));
  });

  test('keeps names that are data', async () => {
    const id = randomUUID();
    const properties = `{"__proto__":{"x":1},"constructor":null,"":0,"id":"${id}"}`;
    const body = `{"batch":[{"type":"track","event":"e","userId":"ada","properties":${properties}}]}`;
    expect((await send(body)).statusCode).toBe(200);
    const [row] = await rowsWhere('events', (found) => (found['properties'] as Row | undefined)?.['id'] === id);
    expect(JSON.stringify((row as Row)['properties'])).toBe(properties);
  });
});

test('of two changes in a batch the later one wins', async () => {
  const user = randomUUID();
  await taken(
    { type: 'identify', userId: user, traits: { plan: 'free' } },
    { type: 'track', event: 'e', userId: user },
    { type: 'identify', userId: user, traits: { plan: 'pro' } },
  );
  const changes = await rowsWhere('entities', ({ id }) => id === user, 2);
  const [newest] = changes.toSorted((a, b) => Number(b['version']) - Number(a['version']));
  expect(newest).toMatchObject({ value: '"pro"' });
  expect(new Set(changes.map(({ version }) => version)).size).toBe(2);
});

describe('a call that cannot be taken', () => {
  test.each([
    ['is no object', 1, 'A call must be an object.'],
    ['has no type', { userId: 'a', event: 'e' }, 'type must be one of'],
    ['has no identifier', { type: 'track', event: 'e', userId: '' }, 'One of userId'],
    ['has no event name', { type: 'track', userId: 'a' }, 'event must be a string'],
    ['has an identifier that is too long', { type: 'page', userId: 'x'.repeat(513) }, 'userId must be at most'],
    ['has an identifier that is no text', { type: 'page', userId: { a: 1 } }, 'userId must be a string'],
    [
      'has properties that are no object',
      { type: 'page', userId: 'a', properties: [1] },
      'properties must be an object',
    ],
    ['is of the next century', { type: 'page', userId: 'a', timestamp: '2099-01-01' }, 'timestamp must be at most one'],
    [
      'has a messageId of the next century',
      { type: 'page', userId: 'a', messageId: 'node-next-4070908800000-a' },
      'the time in messageId must be at most one day from now',
    ],
    ['names no organization', { type: 'group', userId: 'a' }, 'groupId is needed'],
    ['sets too much', { type: 'identify', userId: 'a', traits: { a: 1, b: 1, c: 1, d: 1, e: 1, f: 1 } }, 'at most 5'],
    ['is too large', { type: 'page', userId: 'a', properties: { p: 'x'.repeat(20_000) } }, 'at most 20000 bytes'],
  ])('because it %s is named, and kept', async (_why, call, message) => {
    expect(await rejectedOf(call)).toMatchObject({ index: 0, message: expect.stringContaining(message) });
    const [row] = await rowsWhere('events', (found) => found['call'] === JSON.stringify(call));
    expect(row).toMatchObject({ workspace_id: 'test', reason: expect.stringContaining(message) });
  });

  const large = `"p":"${'x'.repeat(20_000)}"`;

  test.each([
    ['is too large', (user: string) => `{"type":"page","userId":"${user}",${large}}`, ''],
    ['is too large and names it last', (user: string) => `{${large},"type":"page","userId":"${user}"}`, ''],
    ['is too wide', (user: string) => `{"userId":"${user}","p":[${'1,'.repeat(10_000)}1]}`, ''],
    ['is too deep', (user: string) => `{"p":${'['.repeat(600)}${']'.repeat(600)},"userId":"${user}"}`, ''],
    ['has a bad context', (user: string) => `{"type":"page","userId":"${user}"}`, ',"context":1'],
    ['has a large context', (user: string) => `{"type":"page","userId":"${user}"}`, `,"context":{${large}}`],
    ['is no JSON after it', (user: string) => `{"userId":"${user}",${large},"a" "b":tru}`, ''],
    ['is no JSON in an escape', (user: string) => `{"\\x00000000":1,${large},"userId":"${user}"}`, ''],
    ['escapes the name', (user: string) => `{"user\\u0049\\u0064":"${user}",${large}}`, ''],
    ['names it twice', (user: string) => `{"userId":"other","p":{"userId":"x"},"userId":"${user}",${large}}`, ''],
  ])('names its user when it %s', async (_why, call, rest) => {
    const user = randomUUID();
    const response = await send(`{"batch":[{"type":"page","userId":"a"},${call(user)}]${rest}}`);
    expect(response.json().rejected).toContainEqual(expect.objectContaining({ index: 1 }));
    const [row] = await rowsWhere('events', (found) => String(found['call']).includes(user));
    expect(row).toMatchObject({ user_id: user });
  });

  test('names its user as events do when that is a number', async () => {
    const mark = randomUUID();
    await send(`{"batch":[{"userId":12345678901234567891,"p":"${mark}",${large}}]}`);
    const [row] = await rowsWhere('events', (found) => String(found['call']).includes(mark));
    expect(row).toMatchObject({ user_id: '12345678901234567891' });
  });

  test('does not keep the others from being taken', async () => {
    const mark = randomUUID();
    const good = { type: 'track', event: mark, userId: 'a' };
    const response = await send({ batch: [good, { type: 'track' }, good, 'x', good] });
    expect(response.json()).toMatchObject({ success: true, rejectedCount: 2, rejected: [{ index: 1 }, { index: 3 }] });
    expect(await rowsWhere('events', ({ event }) => event === mark, 3)).toHaveLength(3);
  });

  test('on a route of one type is kept with its type and its user', async () => {
    const user = randomUUID();
    const response = await send({ userId: user, event: '' }, { path: '/v1/track' });
    expect(response.json()).toMatchObject({ success: true, rejected: [{ index: 0, code: 'invalid_call' }] });
    const [row] = await rowsWhere('events', (found) => found['user_id'] === user);
    expect(row).toMatchObject({ type: 'track', call: `{"userId":"${user}","event":""}` });
  });

  test('is kept without API keys', async () => {
    const user = randomUUID();
    const call = `{"userId":"${user}","writeKey":"of \\u0061nother","event":"","context":{"key":"\\u0061ll"}}`;
    await send(`{"batch":[${call}],"context":{"all":"all"}}`);
    const [row] = await rowsWhere('events', (found) => found['user_id'] === user);
    expect(row).toMatchObject({
      call: `{"userId":"${user}","writeKey":"","event":"","context":{"key":""}}`,
      context: '{"":""}',
    });
  });

  test('is kept with the client that sent it, and counted by client and reason', async () => {
    const context = { library: { name: 'analytics-rust', version: '1' } };
    const good = { type: 'track', event: 'e', userId: 'a', context };
    const bad: readonly [reason: string, call: unknown][] = [
      ['identifier', { ...good, userId: '' }],
      ['identifier', { ...good, anonymousId: {} }],
      ['malformed', 7],
      ['name', { ...good, event: '' }],
      ['properties', { ...good, properties: 'x' }],
      ['time', { ...good, timestamp: '2099-01-01T00:00:00Z' }],
      ['too_large', { ...good, properties: { text: 'x'.repeat(20_000) } }],
      ['type', { ...good, type: 'merge' }],
    ];
    const before = await callsOf('analytics-rust');
    const { rejected } = (await send({ batch: [good, ...bad.map(([, call]) => call)] })).json();
    expect(rejected).toHaveLength(bad.length);
    for (const one of rejected) expect(Object.keys(one)).toEqual(['index', 'code', 'message']);
    const rows = await rowsWhere('events', ({ client }) => client === 'analytics-rust', bad.length);
    expect(Object.keys(rows[0] ?? {}).slice(0, 2)).toEqual(['workspace_id', 'client']);
    expect(before).toEqual({ all: 0 });
    const rejections = { malformed: 1, name: 1, properties: 1, time: 1, too_large: 1, type: 1, identifier: 2 };
    expect(await callsOf('analytics-rust')).toEqual({ all: 1 + bad.length, ...rejections });
  });

  test('adds no series to the metrics, whatever its client calls itself', async () => {
    const seriesOf = async () => (await ingest.app.inject('/metrics')).body.match(/^sluice_ingest_\w*calls_total/gm);
    const reject = (name: string) => send({ batch: [{ type: 'page', context: { library: { name } } }] });
    await reject('mine');
    const before = await seriesOf();
    for (let count = 0; count < 20; count += 1) await reject(`mine-${count}`);
    expect(await seriesOf()).toEqual(before);
  });

  /** All calls of a client, and those that were rejected for each reason. */
  async function callsOf(client: string): Promise<Record<string, number>> {
    const { body } = await ingest.app.inject('/metrics');
    const series = body.matchAll(
      new RegExp(`^sluice_ingest_(?:rejected_)?calls_total\\{client="${client}"(?:,reason="(\\w+)")?\\} (\\d+)$`, 'gm'),
    );
    return Object.fromEntries([...series].map(([, reason = 'all', count]) => [reason, Number(count)]));
  }

  test('is cut when the context of its batch is very large', async () => {
    const id = randomUUID();
    const response = await send({ batch: [{ type: 'page', userId: id }], context: { text: 'x'.repeat(300_000) } });
    expect(response.json()).toMatchObject({ rejected: [{ code: 'too_large' }] });
    const [row] = await rowsWhere('events', ({ call }) => String(call).includes(id));
    expect(row).toMatchObject({ cut: true });
    expect(row).not.toHaveProperty('context');
  });

  test('is cut when it is very large', async () => {
    const id = randomUUID();
    const response = await send(`{"batch":[{"type":"page","userId":"${id}","p":"${'\u0001'.repeat(300_000)}"}]}`);
    expect(response.json()).toMatchObject({ rejected: [{ code: 'too_large' }] });
    const [row] = await rowsWhere('events', ({ call }) => String(call).includes(id));
    expect(row).toMatchObject({ cut: true });
    expect(JSON.stringify(row).length).toBeLessThan(800 * 1_024);
  });
});

describe('the key may be', () => {
  const body = { userId: 'a', event: 'e' };
  const basic = (text: string) => `Basic ${Buffer.from(text).toString('base64')}`;

  test.each([
    ['a bearer token', '/v1/track', { authorization: 'Bearer all' }, body],
    ['a user name', '/v1/track', { authorization: basic('all:') }, body],
    ['in the query', '/v1/track?writeKey=all', {}, body],
    ['in the body', '/v1/track', {}, { ...body, writeKey: 'all' }],
    ['in the batch', '/v1/batch', {}, { writeKey: 'all', batch: [{ ...body, type: 'track' }] }],
    ['in the first call', '/v1/batch', {}, { batch: [{ ...body, type: 'track', writeKey: 'all' }] }],
  ])('%s', async (_what, path, headers, sent) => {
    const response = await send(sent, { path, headers });
    expect([response.statusCode, response.body]).toEqual([200, '{"success":true}']);
  });

  test.each([
    ['absent', '/v1/track', {}, body, 401],
    ['wrong', '/v1/track', { authorization: basic('nobody:') }, body, 401],
    ['wrong first', '/v1/track?writeKey=all', { authorization: 'Bearer nobody' }, { ...body, writeKey: 'all' }, 401],
    ['wrong in the query', '/v1/track?writeKey=nobody', {}, { ...body, writeKey: 'all' }, 401],
    ['wrong in the body', '/v1/track', {}, { ...body, writeKey: 'nobody' }, 401],
    ['no text', '/v1/track', {}, { ...body, writeKey: { a: 1 } }, 401],
    ['of another scope', '/v1/track', {}, { ...body, writeKey: 'query-only' }, 403],
  ])('but not %s', async (_what, path, headers, sent, status) => {
    const response = await send(sent, { path, headers });
    expect(response.statusCode).toBe(status);
    expect(response.json().message).toBe(response.json().detail);
  });
});

describe('a body', () => {
  const text = '{"type":"track","event":"e","userId":"a","batch":[]}';

  test.each(['application/json', 'text/plain', 'application/x-www-form-urlencoded', 'nonsense', ''])(
    'may be of the type %j',
    async (type) => {
      const headers = { authorization: 'Bearer all', ...(type && { 'content-type': type }) };
      for (const path of ['/v1/track', '/v1/track/', '/v1/t', '/v1/b', '/v1/import', '/beacon/v1/batch/']) {
        expect((await send(text, { path, headers })).body).toBe('{"success":true}');
        expect((await send(text, { path: `/${path}`, headers })).body).toBe('{"success":true}');
      }
    },
  );

  test.each(['/v1/t', '/v1/b'])('may begin with a byte order mark, compressed or not: %s', async (path) => {
    const bytes = Buffer.from(`\ufeff${text}`);
    for (const body of [bytes, gzipSync(bytes)]) expect((await send(body, { path })).body).toBe('{"success":true}');
  });

  test('may have an empty Content-Encoding', async () => {
    const headers = { authorization: 'Bearer all', 'content-encoding': '' };
    expect((await send(text, { path: '/v1/t', headers })).body).toBe('{"success":true}');
  });

  test('may be gzip data that says so, or does not', async () => {
    for (const headers of [{ 'content-encoding': 'gzip' }, { 'content-type': 'application/x-www-form-urlencoded' }]) {
      const response = await send(gzipSync(text), {
        path: '/v1/t',
        headers: { authorization: 'Bearer all', ...headers },
      });
      expect(response.body).toBe('{"success":true}');
    }
  });

  test.each([
    ['no JSON', '{"batch":[}', 400, 'malformed_json'],
    ['no JSON inside of a call', '{"batch":[{"a":tru}]}', 400, 'malformed_json'],
    ['empty', '', 400, 'malformed_json'],
    ['not UTF-8', Buffer.from([0x7b, 0xff, 0x7d]), 400, 'malformed_json'],
    ['without a batch', '{"type":"track"}', 400, 'invalid_request'],
    ['an array', '[]', 400, 'invalid_request'],
    ['with a batch that is none', '{"batch":{}}', 400, 'invalid_request'],
    ['too large', `{"batch":[],"a":"${'x'.repeat(700_000)}"}`, 413, 'body_too_large'],
    ['of too many calls', JSON.stringify({ batch: Array.from({ length: 51 }, () => ({})) }), 413, 'body_too_large'],
  ])('is refused when it is %s', async (_what, body, status, code) => {
    expect((await send(body)).json()).toMatchObject({ status, code, message: expect.any(String) });
  });

  test('whose context would be repeated too often is refused', async () => {
    const calls = Array.from({ length: 50 }, () => ({ type: 'page', userId: 'a' }));
    const context = { text: 'x'.repeat(19_000) };
    expect((await send({ batch: calls, context })).body).toBe('{"success":true}');
    const many = await startIngest(inject('kafkaBrokers'), { BODY_BYTES_MAX: '100000', PENDING_BYTES_MAX: '2000000' });
    try {
      const body = JSON.stringify({ batch: calls, context });
      const headers = { authorization: 'Bearer all' };
      const response = await many.app.inject({ method: 'POST', url: '/v1/batch', headers, payload: body });
      expect(response.json()).toMatchObject({ status: 413, code: 'body_too_large' });
    } finally {
      await many.stop();
    }
  });
});

test('browsers may send what their clients send', async () => {
  const preflight = await ingest.app.inject({
    method: 'OPTIONS',
    url: '/v1/batch',
    headers: {
      origin: 'https://app.example',
      'access-control-request-method': 'POST',
      'access-control-request-headers': 'anonymousid,authorization,content-type,sentat',
    },
  });
  expect(preflight.headers).toMatchObject({
    'access-control-allow-origin': 'https://app.example',
    'access-control-allow-headers': 'anonymousid,authorization,content-type,sentat',
    'access-control-max-age': '86400',
    'access-control-allow-credentials': 'true',
  });
  const refused = await send('{', { headers: { origin: 'https://app.example', authorization: 'Bearer nobody' } });
  expect([refused.statusCode, refused.headers['access-control-allow-origin']]).toEqual([401, 'https://app.example']);
});

test('the source that RudderStack’s clients ask for needs a key', async () => {
  const authorization = `Basic ${Buffer.from('all:').toString('base64')}`;
  const found = await ingest.app.inject({ url: '/sourceConfig/?p=npm&v=3', headers: { authorization } });
  expect(found.json()).toMatchObject({ source: { enabled: true, destinations: [] } });
  // The client for Kotlin reads no source without these.
  const needed = ['id', 'name', 'writeKey', 'config', 'enabled', 'workspaceId', 'destinations', 'updatedAt'];
  expect(Object.keys(found.json().source)).toEqual(expect.arrayContaining(needed));
  expect((await ingest.app.inject({ url: '/sourceConfig' })).statusCode).toBe(401);
});
