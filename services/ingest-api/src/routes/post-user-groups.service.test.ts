import { randomUUID } from 'node:crypto';
import { gzipSync, zstdCompressSync } from 'node:zlib';
import { eventually } from '@sluice/shared/testing/eventually';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { type Ingest, post, startIngest } from '../testing/ingest.ts';

let ingest: Ingest;

beforeAll(async () => {
  ingest = await startIngest(inject('kafkaBrokers'), {
    BODY_BYTES_MAX: '400000',
    EVENT_BYTES_MAX: '20000',
    EVENTS_PER_SUBMISSION_MAX: '50',
  });
});
afterAll(() => ingest.stop());

async function accepted(body: unknown, options?: Parameters<typeof post>[2]): Promise<string[]> {
  const response = await post(ingest.app, body, options);
  expect(response.json()).toMatchObject({ status: 'accepted' });
  expect(response.statusCode).toBe(202);
  return (response.json() as { events: { uuid: string }[] }).events.map(({ uuid }) => uuid);
}

async function rowOf(uuid: string | undefined): Promise<Record<string, unknown>> {
  for (let count = 1; ; count += 1) {
    const rows = (await ingest.read('events', count)).flatMap((message) => message.rows);
    const row = rows.find((candidate) => candidate['uuid'] === uuid);
    if (row) return row;
    count = rows.length;
  }
}

async function errors(body: unknown, options?: Parameters<typeof post>[2]): Promise<string[]> {
  const response = await post(ingest.app, body, options);
  expect(response.statusCode).toBe(400);
  expect(response.headers['content-type']).toContain('application/problem+json');
  const problem = response.json() as { code: string; requestId: string; errors: { path: string; message: string }[] };
  expect(problem).toMatchObject({ type: 'about:blank', title: 'Bad Request', status: 400, code: 'invalid_request' });
  expect(problem.requestId).toBe(response.headers['x-request-id']);
  return problem.errors.map(({ path }) => path).sort();
}

describe('202', () => {
  test('is the response once Kafka has the rows, with a uuid for each event in order', async () => {
    const begunMs = Date.now();
    const [first, second] = await accepted({
      foreignUserGroupId: 'acme',
      foreignUserId: 'ada',
      events: [
        { event: 'one', timestamp: '2026-03-01T12:00:00+01:00', properties: { a: [1, null, {}] } },
        {
          event: 'two',
          uuid: 'F81D4FAE-7DEC-41D0-A765-00A0C91E6BF6',
          anonymousId: 'an',
          instanceId: 'in',
          context: { c: 1 },
          traits: {},
          type: 'track',
        },
      ],
    });
    expect(await rowOf(first)).toMatchObject({
      workspace_id: 'test',
      timestamp: Date.UTC(2026, 2, 1, 11),
      event: 'one',
      user_id: 'ada',
      group_id: 'acme',
      properties: { a: [1, null, {}] },
    });
    expect(second).toBe('f81d4fae-7dec-41d0-a765-00a0c91e6bf6');
    const row = await rowOf(second);
    expect(row).toMatchObject({
      event: 'two',
      anonymous_id: 'an',
      instance_id: 'in',
      context: { c: 1 },
      traits: {},
      stamped: 1,
    });
    expect(Number(row['timestamp'])).toBeGreaterThanOrEqual(begunMs - 1);
    expect(Number(row['timestamp'])).toBeLessThanOrEqual(Date.now() + 1);
    expect(Math.floor(Number(row['received_at']) / 1_000)).toBe(row['timestamp']);
  });

  test('the events of a request are received one after the other, in the order of the request, and before those of the next', async () => {
    const time = '2026-03-01T12:00:00Z';
    const events = ['cart', 'checkout', 'paid'].map((event) => ({ event, timestamp: time, uuid: randomUUID() }));
    const body = { foreignUserGroupId: 'acme', events };
    const uuids = await accepted(body);
    const [next] = await accepted({ ...body, events: [{ event: 'next' }] });
    const rows = await Promise.all([...uuids, next].map((uuid) => rowOf(uuid)));
    const received = rows.map((row) => Number(row['received_at']));
    expect(received.slice(0, 3).map((us) => us - (received[0] ?? 0))).toEqual([0, 1, 2]);
    expect(received[3]).toBeGreaterThan(received[2] ?? Number.NaN);
  });

  test('a UUIDv7 brings its own time', async () => {
    const [uuid] = await accepted({
      foreignUserGroupId: 'acme',
      events: [{ event: 'e', uuid: '018e0000-0000-7abc-8def-0123456789ab' }],
    });
    const row = await rowOf(uuid);
    expect(row['timestamp']).toBe(0x018e00000000);
    expect(row).not.toHaveProperty('stamped');
  });

  test('a repeat lies in the same partition as its original', async () => {
    const event = { event: 'e', uuid: 'f81d4fae-7dec-41d0-a765-00a0c91e6bf7', timestamp: '2026-01-01T00:00:00Z' };
    await accepted({ foreignUserGroupId: 'a', events: [event] });
    await accepted({ foreignUserGroupId: 'b', foreignUserId: 'u', events: [event] });
    await rowOf(event.uuid);
    const holding = (await ingest.read('events', 1)).filter(({ rows }) =>
      rows.some((row) => row['uuid'] === event.uuid),
    );
    expect(new Set(holding.map(({ partition }) => partition)).size).toBe(1);
  });

  test('uuids that end alike, as versions 1 and 6 of one producer do, are spread over all partitions', async () => {
    const uuids = Array.from({ length: 30 }, (_, index) => [
      `${(0x1000_0000 + index * 7_919).toString(16)}-7b1a-11ef-9d5e-0242ac120002`,
      `1ef7b1a0-${(0x1000 + index * 13).toString(16)}-6f9d-9d5e-0242ac120002`,
    ]).flat();
    const events = uuids.map((uuid) => ({ event: 'e', uuid, timestamp: '2026-01-01T00:00:00Z' }));
    for (let start = 0; start < events.length; start += 50) {
      await accepted({ foreignUserGroupId: 'spread', events: events.slice(start, start + 50) });
    }
    await rowOf(uuids.at(-1));
    const rows = (await ingest.read('events', 1)).flatMap(({ partition, rows: found }) =>
      found.filter(({ group_id: id }) => id === 'spread').map(() => partition),
    );
    const counts = [0, 1, 2].map((partition) => rows.filter((found) => found === partition).length);
    expect(Math.min(...counts), String(counts)).toBeGreaterThan(8);
  });

  test('an Idempotency-Key gives the events of a repeated request the same uuids', async () => {
    const body = { foreignUserGroupId: 'acme', events: [{ event: 'e' }, { event: 'e' }] };
    const uuids = await accepted(body, { headers: { 'idempotency-key': 'order-1' } });
    expect(await accepted(body, { headers: { 'idempotency-key': 'order-1' } })).toEqual(uuids);
    const sameBodyAsText = ' { "events":[ {"event":"\\u0065"},{"event":"e"}],"foreignUserGroupId":"acme"}';
    expect(await accepted(sameBodyAsText, { headers: { 'idempotency-key': 'order-1' } })).toEqual(uuids);
    expect(new Set(uuids).size).toBe(2);
    expect(await accepted(body, { headers: { 'idempotency-key': 'order-2' } })).not.toEqual(uuids);
    expect(await accepted(body)).not.toEqual(await accepted(body));
    expect(await rowOf(uuids[0])).toMatchObject({ stamped: 1 });
  });

  test('an Idempotency-Key that is used again with another body is another request: its events are new', async () => {
    const headers = { 'idempotency-key': 'order-3' };
    const event = { event: 'e', properties: { amount: 1 } };
    const [first] = await accepted({ foreignUserGroupId: 'acme', events: [event] }, { headers });
    const others = [
      { foreignUserGroupId: 'acme', events: [{ ...event, properties: { amount: 2 } }] },
      { foreignUserGroupId: 'acme', events: [{ ...event, timestamp: '2026-01-01T00:00:00Z' }] },
      { foreignUserGroupId: 'acme', foreignUserId: 'jane', events: [event] },
      { foreignUserGroupId: 'other', events: [event] },
    ];
    const uuids = new Set([first]);
    for (const body of others) for (const uuid of await accepted(body, { headers })) uuids.add(uuid);
    expect(uuids.size).toBe(5);
    for (const uuid of uuids) expect(await rowOf(uuid)).toMatchObject({ event: 'e' });
  });

  test('null counts as absent, and a body may be compressed', async () => {
    const body = JSON.stringify({
      foreignUserGroupId: 'acme',
      foreignUserId: null,
      properties: null,
      events: [{ event: 'e', uuid: null, timestamp: null, properties: null, anonymousId: null }],
    });
    const [uuid] = await accepted(gzipSync(body), { headers: { 'content-encoding': 'gzip' } });
    const row = await rowOf(uuid);
    expect(Object.keys(row).sort()).toEqual(['event', 'group_id', 'received_at', 'timestamp', 'uuid', 'workspace_id']);
    await accepted(zstdCompressSync(body), { headers: { 'content-encoding': 'zstd' } });
    await accepted(body, { headers: { 'content-encoding': '' } });
    await accepted(`\ufeff${body}`);
    await accepted(gzipSync(`\ufeff${body}`), { headers: { 'content-encoding': 'gzip' } });
  });

  test('a body may become many times as large when it is decompressed', async () => {
    const body = gzipSync(`{"foreignUserGroupId":"acme",${' '.repeat(300_000)}"events":[{"event":"e"}]}`);
    expect(body.length).toBeLessThan(1_000);
    await accepted(body, { headers: { 'content-encoding': 'gzip' } });
  });

  test('small compressed bodies take little memory, however many come at once', async () => {
    const small = await startIngest(inject('kafkaBrokers'), {
      BODY_BYTES_MAX: String(4 * 1_024 * 1_024),
      PENDING_BYTES_MAX: String(48 * 1_024 * 1_024),
    });
    try {
      const body = gzipSync('{"foreignUserGroupId":"acme","events":[{"event":"e"}]}');
      const send = () => post(small.app, body, { headers: { 'content-encoding': 'gzip' } });
      const responses = await Promise.all(Array.from({ length: 64 }, send));
      expect(new Set(responses.map(({ statusCode }) => statusCode))).toEqual(new Set([202]));
    } finally {
      await small.stop();
    }
  });

  test('names are data: every name is accepted, and none changes a prototype', async () => {
    const properties =
      '{"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}},"":0,"a.b":1,"\\u0000":2,"\\"":3}';
    const [uuid] = await accepted(
      `{"foreignUserGroupId":"names","properties":${properties},"events":[{"event":"e","properties":${properties}}]}`,
    );
    const row = await rowOf(uuid);
    expect(JSON.stringify(row['properties'])).toBe(properties);
    expect(({} as Record<string, unknown>)['polluted']).toBeUndefined();
    const changes = (await ingest.read('entities', 6)).flatMap(({ rows }) => rows).filter(({ id }) => id === 'names');
    expect(changes.map(({ property }) => property).sort()).toEqual(
      ['', '\0', '"', '__proto__', 'a.b', 'constructor'].sort(),
    );
  });

  test('lengths are counted in code points', async () => {
    await accepted({ foreignUserGroupId: '😀'.repeat(512), events: [{ event: '😀'.repeat(200) }] });
    expect(await errors({ foreignUserGroupId: '😀'.repeat(513), events: [{ event: '😀'.repeat(201) }] })).toEqual([
      'events.0.event',
      'foreignUserGroupId',
    ]);
  });

  test('objects may nest 32 levels deep, and zero keeps its sign', async () => {
    const nested = (levels: number): unknown => (levels === 1 ? {} : { a: nested(levels - 1) });
    await accepted({ foreignUserGroupId: 'acme', events: [{ event: 'e', properties: nested(32) }] });
    expect(await errors({ foreignUserGroupId: 'acme', events: [{ event: 'e', properties: nested(33) }] })).toEqual([
      'events.0.properties',
    ]);
    const [uuid] = await accepted(
      '{"foreignUserGroupId":"acme","events":[{"event":"e","properties":{"n":-0,"m":[0,-0.0]}}]}',
    );
    expect((await rowOf(uuid))['properties']).toEqual({ n: -0, m: [0, -0] });
  });

  test('identifiers alone create the user and the organization', async () => {
    await accepted({ foreignUserGroupId: 'alone-group', foreignUserId: 'alone-user' });
    await eventually(async () =>
      (await ingest.read('entities', 1))
        .flatMap(({ rows }) => rows)
        .filter(({ id }) => String(id).startsWith('alone'))
        .map(({ kind, operation, group_id }) => `${kind} ${operation} ${group_id}`)
        .sort(),
    ).toEqual(['organization seen undefined', 'user seen alone-group']);
  });

  test('properties become changes of the organization with one version; null removes a property', async () => {
    await accepted({ foreignUserGroupId: 'props', properties: { plan: 'pro', old: null, deep: { a: null } } });
    await eventually(async () =>
      (await ingest.read('entities', 1))
        .flatMap(({ rows }) => rows)
        .filter(({ id }) => id === 'props')
        .map(({ operation, property, value }) => [operation, property, value]),
    ).toEqual([
      ['seen', undefined, undefined],
      ['set', 'plan', '"pro"'],
      ['remove', 'old', undefined],
      ['set', 'deep', '{"a":null}'],
    ]);
  });
});

describe('400', () => {
  test('names every error at once, and accepts nothing of the submission', async () => {
    expect(
      await errors({
        foreignUserGroupId: '',
        foreignUserId: 7,
        colour: 'red',
        properties: [],
        events: [
          { event: 'x'.repeat(201), uuid: 'nope', timestamp: '2026-02-30' },
          { properties: 'no', type: 'page', anonymousId: '' },
          'event',
        ],
      }),
    ).toEqual([
      'colour',
      'events.0.event',
      'events.0.timestamp',
      'events.0.uuid',
      'events.1.anonymousId',
      'events.1.event',
      'events.1.properties',
      'events.1.type',
      'events.2',
      'foreignUserGroupId',
      'foreignUserId',
      'properties',
    ]);
  });

  test.each([['1999-12-31T23:59:59.999Z'], [new Date(Date.now() + 25 * 3_600_000).toISOString()]])(
    'a timestamp outside the accepted range: %s',
    async (timestamp) => {
      expect(await errors({ foreignUserGroupId: 'a', events: [{ event: 'e', timestamp }] })).toEqual([
        'events.0.timestamp',
      ]);
    },
  );

  test('a UUIDv7 whose time is outside the range, unless a timestamp is given', async () => {
    const uuid = '00000000-0000-7000-8000-000000000000';
    expect(await errors({ foreignUserGroupId: 'a', events: [{ event: 'e', uuid }] })).toEqual(['events.0.uuid']);
    await accepted({ foreignUserGroupId: 'a', events: [{ event: 'e', uuid, timestamp: '2026-01-01' }] });
  });

  test('a lone surrogate in a name or identifier', async () => {
    expect(
      await errors('{"foreignUserGroupId":"\\ud800","properties":{"\\udc00":1},"events":[{"event":"\\ud800"}]}'),
    ).toEqual(['events.0.event', 'foreignUserGroupId', 'properties']);
  });

  test('names a thousand of thousands of errors', async () => {
    const body = {
      foreignUserGroupId: 'a',
      ...Object.fromEntries(Array.from({ length: 5_000 }, (_, n) => [`x${n}`, 1])),
    };
    const problem = (await post(ingest.app, body)).json() as { detail: string; errors: unknown[] };
    expect(problem.detail).toBe('The request has 5000 errors, of which 1000 are named.');
    expect(problem.errors).toHaveLength(1_000);
  });

  test('a number that is too large for a 64-bit float', async () => {
    expect(await errors('{"foreignUserGroupId":"a","properties":{"n":1e999}}')).toEqual(['properties']);
  });

  test('more events than allowed, and a malformed Idempotency-Key', async () => {
    expect(await errors({ foreignUserGroupId: 'a', events: Array(51).fill({ event: 'e' }) })).toEqual(['events']);
    expect(await errors({ foreignUserGroupId: 'a' }, { headers: { 'idempotency-key': 'a b' } })).toEqual([
      'Idempotency-Key',
    ]);
    expect(
      await errors({ colour: 1, events: [{ event: '' }] }, { headers: { 'idempotency-key': 'x'.repeat(201) } }),
    ).toEqual(['Idempotency-Key', 'colour', 'events.0.event', 'foreignUserGroupId']);
  });

  test.each(['', '{', 'nope', '{"foreignUserGroupId":"a"}x'])('a body that is not JSON: %j', async (body) => {
    const response = await post(ingest.app, body);
    expect(response.statusCode).toBe(400);
    expect(response.json()).toMatchObject({ code: 'malformed_json' });
  });

  test.each([
    ['not UTF-8', Buffer.from([0x22, 0xff, 0x22]), {}],
    ['not compressed as Content-Encoding says', 'plain', { 'content-encoding': 'gzip' }],
  ] as const)('a body that is %s', async (_what, body, headers) => {
    expect((await post(ingest.app, body, { headers })).json()).toMatchObject({ code: 'malformed_json', status: 400 });
  });
});

describe('other refusals', () => {
  test('401 without a key', async () => {
    const response = await ingest.app.inject({ method: 'POST', url: '/v1/public/userGroups', payload: {} });
    expect([response.statusCode, response.headers['www-authenticate']]).toEqual([401, 'Bearer']);
  });

  test.each([
    ['an unknown key', 'Bearer unknown', 401, 'unauthorized'],
    ['another scheme', 'Basic all', 401, 'unauthorized'],
    ['a key without the scope', 'Bearer query-only', 403, 'missing_scope'],
  ] as const)('the Authorization header with %s', async (_what, authorization, status, code) => {
    expect((await post(ingest.app, {}, { headers: { authorization } })).json()).toMatchObject({ status, code });
  });

  test('none for a key whose scheme is in other letters', async () => {
    const response = await post(ingest.app, { foreignUserGroupId: 'a' }, { headers: { authorization: 'bEARER all' } });
    expect(response.statusCode).toBe(202);
  });

  test('404 for an unknown path, and 405 with the methods of a path', async () => {
    expect((await ingest.app.inject({ url: '/nope' })).json()).toMatchObject({ status: 404, code: 'not_found' });
    const wrong = await ingest.app.inject({ method: 'PUT', url: '/v1/public/userGroups' });
    expect([wrong.statusCode, wrong.headers['allow']]).toEqual([405, 'POST']);
  });

  test('413 for a body that is too large, also after decompression, and for an event or a property', async () => {
    const large = JSON.stringify({ foreignUserGroupId: 'a', pad: 'x'.repeat(400_000) });
    expect((await post(ingest.app, large)).json()).toMatchObject({ status: 413, code: 'body_too_large' });
    expect((await post(ingest.app, gzipSync(large), { headers: { 'content-encoding': 'gzip' } })).json()).toMatchObject(
      { status: 413 },
    );
    const event = { event: 'e', properties: { p: 'x'.repeat(20_000) } };
    const response = await post(ingest.app, {
      foreignUserGroupId: 'a',
      events: [{ event: 'ok' }, event],
      properties: { big: 'x'.repeat(20_000) },
    });
    expect(response.json()).toMatchObject({
      status: 413,
      errors: [{ path: 'events.1', code: 'too_large' }, { path: 'properties.big' }],
    });
  });

  test.each([
    ['a body that is not JSON', 'a=1', { 'content-type': 'application/x-www-form-urlencoded' }],
    ['an unknown encoding', '{}', { 'content-encoding': 'compress' }],
  ] as const)('415 for %s', async (_what, body, headers) => {
    const response = await post(ingest.app, body, { headers });
    expect(response.json()).toMatchObject({ status: 415, code: 'unsupported_media_type' });
  });
});

describe('X-Request-Id', () => {
  const NEW_ID = /^[0-9a-f-]{36}$/;

  test.each([
    ['plain', 'abc-123', /^abc-123$/],
    ['with a space and a letter beyond ASCII', 'a b\u00e9', NEW_ID],
    ['too long', 'x'.repeat(200), NEW_ID],
  ])('of a request: an id that is %s', async (_what, given, returned) => {
    const response = await post(ingest.app, {}, { headers: { 'x-request-id': given } });
    expect(response.headers['x-request-id']).toMatch(returned);
  });
});
