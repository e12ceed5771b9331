import fc from '@sluice/shared/testing/fast-check';
import { until } from '@sluice/shared/testing/until';
import { beforeAll, describe, expect, test } from 'vitest';
import type { EntityRecord, EventPage } from '../kit/records.ts';
import { type Tenant, takeTenant } from '../kit/shared-pipeline.ts';

let pipeline: Tenant;

beforeAll(async () => {
  pipeline = await takeTenant('journey');
});

/** The body of a response, once it has the status and `accept` accepts it. */
async function eventually<Body>(
  path: string,
  status: number,
  accept: (body: Body) => boolean = () => true,
): Promise<Body> {
  return await until(`${path} to return ${status}`, async () => {
    const response = await pipeline.get<Body>(path);
    return response.status === status && accept(response.body) ? response.body : undefined;
  });
}

test('a submission comes back out of GET /events, and creates its user and its organization', async () => {
  const { status, body } = await pipeline.submit({
    foreignUserGroupId: 'acme',
    foreignUserId: 'ada',
    events: [
      { event: 'signed up', timestamp: '2026-03-01T12:00:00+01:00', properties: { plan: 'pro' }, anonymousId: 'anon' },
    ],
    properties: { name: 'Acme', trial: true },
  });
  expect(status).toBe(202);
  const page = await eventually<EventPage>('/events?groupId=acme', 200, ({ total }) => total === 1);
  expect(page).toEqual({
    limit: 100,
    offset: 0,
    total: 1,
    nextCursor: null,
    results: [
      {
        uuid: body.events[0]?.uuid,
        type: 'track',
        event: 'signed up',
        userId: 'ada',
        groupId: 'acme',
        anonymousId: 'anon',
        instanceId: null,
        properties: { plan: 'pro' },
        context: {},
        traits: {},
        timestamp: '2026-03-01T11:00:00.000Z',
        receivedAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
        linkedUserId: 'ada',
      },
    ],
  });
  const seen = { firstSeenAt: '2026-03-01T11:00:00.000Z', lastSeenAt: '2026-03-01T11:00:00.000Z' };
  expect(await eventually<EntityRecord>('/users/ada', 200)).toEqual({ foreignId: 'ada', properties: {}, ...seen });
  const organization = await eventually<EntityRecord>(
    '/organizations/acme',
    200,
    ({ properties }) => 'name' in properties,
  );
  expect(organization).toEqual({ foreignUserGroupId: 'acme', properties: { name: 'Acme', trial: true }, ...seen });
});

test('a submission without events that names both makes the user a member, until the user is deleted', async () => {
  const foreignId = 'member without events';
  const join = async (organization: string) =>
    await pipeline.submit({ foreignUserGroupId: organization, foreignUserId: foreignId });
  interface Members {
    readonly results: readonly { readonly foreignId?: string; readonly foreignUserGroupId?: string }[];
  }
  const organizations = `/users/${encodeURIComponent(foreignId)}/organizations`;
  const isMemberOf = (id: string) => (page: Members) => page.results.some((one) => one.foreignUserGroupId === id);
  expect((await join('before')).status).toBe(202);
  await eventually<Members>(organizations, 200, isMemberOf('before'));
  await eventually<Members>('/organizations/before/users', 200, (page) => page.results[0]?.foreignId === foreignId);
  await pipeline.deleteUser(foreignId);
  await eventually<Members>('/organizations/before/users', 200, ({ results }) => results.length === 0);
  await eventually(organizations, 404);
  await join('since');
  const { results } = await eventually<Members>(organizations, 200, isMemberOf('since'));
  expect(results).toEqual([
    { foreignUserGroupId: 'since', firstSeenAt: expect.any(String), lastSeenAt: expect.any(String) },
  ]);
});

test('properties merge: the last write wins, null removes, what is left out stays', async () => {
  const submit = (properties: object) =>
    pipeline.submit({ foreignId: 'merge', properties }, { path: '/v1/public/users' });
  await submit({ a: 1, b: { c: [] }, d: 'x' });
  await submit({ a: 2, d: null });
  await submit({ e: false });
  const user = await eventually<EntityRecord>('/users/merge', 200, ({ properties }) => 'e' in properties);
  expect(user.properties).toEqual({ a: 2, b: { c: [] }, e: false });
});

test('a repeat is stored once', async () => {
  const body = {
    foreignUserGroupId: 'repeats',
    events: [
      { event: 'e', uuid: '018f0000-0000-7000-8000-000000000001' },
      { event: 'e', uuid: '7d444840-9dc0-41d1-b245-5ffdce74fad2', timestamp: '2026-01-01' },
      { event: 'e', uuid: '7d444840-9dc0-41d1-b245-5ffdce74fad3' },
      { event: 'e' },
    ],
  };
  for (let attempt = 0; attempt < 4; attempt += 1) {
    const { status } = await pipeline.submit(body, { headers: { 'idempotency-key': 'repeats-1' } });
    expect(status).toBe(202);
  }
  await pipeline.drained();
  expect((await pipeline.get<EventPage>('/events?groupId=repeats')).body.total).toBe(4);
});

describe('values come back equal as JSON values', () => {
  const name = fc.oneof(
    fc.string({ unit: 'grapheme' }),
    fc.constantFrom('__proto__', 'constructor', 'a.b', '', '"', '\0', '\\', 'toString'),
  );
  const scalar = fc.oneof(
    fc.constantFrom(
      null,
      true,
      false,
      '',
      'x',
      0,
      -0,
      Number.MAX_VALUE,
      -Number.MAX_VALUE,
      Number.MIN_VALUE,
      Number.EPSILON,
    ),
    fc.constantFrom(2 ** 53, 2 ** 53 + 2, -(2 ** 63), 2 ** 64, 1e21, 1e-7, 0.1 + 0.2),
    fc.double({ noDefaultInfinity: true, noNaN: true }),
    fc.string({ unit: 'binary' }),
  );
  const json = fc.letrec((tie) => ({
    value: fc.oneof({ maxDepth: 4, withCrossShrink: true }, scalar, tie('array'), tie('object')),
    array: fc.array(tie('value'), { maxLength: 4 }),
    object: fc.array(fc.tuple(name, tie('value')), { maxLength: 5 }).map(objectOf),
  }));

  test('nulls, empty objects, any name, any Unicode, numbers at the edges of IEEE 754, depth 32', async () => {
    const object = json.object as fc.Arbitrary<Record<string, unknown>>;
    const samples = fc.sample(fc.record({ properties: object, context: object, traits: object }), {
      numRuns: 300,
      seed: 7,
    });
    const deep = Array.from({ length: 30 }).reduce<Record<string, unknown>>(
      (inner) => ({ deeper: inner, list: [null, [], {}] }),
      {},
    );
    samples.push({ properties: deep, context: {}, traits: { '': { '': '' } } });
    const events = samples.map((sample, index) => ({
      event: 'value',
      timestamp: new Date(Date.UTC(2025, 0, 1) + index).toISOString(),
      ...sample,
    }));
    const { status } = await pipeline.submit(encode({ foreignUserGroupId: 'values', events, properties: deep }));
    expect(status).toBe(202);
    const path = `/events?groupId=values&orderByDirection=ASC&limit=1000`;
    const { results } = await eventually<EventPage>(path, 200, ({ total }) => total === events.length);
    for (const [index, { properties, context, traits }] of results.entries()) {
      expect({ properties, context, traits }).toEqual(samples[index]);
    }
    const organization = await eventually<EntityRecord>(
      '/organizations/values',
      200,
      ({ properties }) => 'list' in properties,
    );
    expect(organization.properties).toEqual(deep);
  });
});

/** An object of these members; `__proto__` is a member like any other. */
function objectOf(members: readonly (readonly [string, unknown])[]): Record<string, unknown> {
  const object: Record<string, unknown> = {};
  for (const [key, value] of members) {
    Object.defineProperty(object, key.toWellFormed(), { value, enumerable: true, writable: true, configurable: true });
  }
  return object;
}

/** JSON.stringify, but with the sign of a negative zero. */
function encode(value: unknown): string {
  const marker = '\u0001negative zero\u0001';
  const text = JSON.stringify(value, (_key, member: unknown) => (Object.is(member, -0) ? marker : member));
  return text.replaceAll(JSON.stringify(marker), '-0');
}

test('a deleted user is soon gone from every read at once, and what is submitted afterwards starts from nothing', async () => {
  const event = (uuid: string, timestamp: string) => ({ event: 'visit', uuid, timestamp });
  const old = event('7d444840-9dc0-41d1-b245-5ffdce74fb01', '2026-01-01T00:00:00.000Z');
  const future = event('7d444840-9dc0-41d1-b245-5ffdce74fb02', new Date(Date.now() + 3_600_000).toISOString());
  const submit = (events: object[], properties?: object) =>
    pipeline.submit({ foreignUserGroupId: 'gone', foreignUserId: 'eve', events, properties });
  await submit([old, future]);
  await pipeline.submit({ foreignId: 'eve', properties: { name: 'Eve' } }, { path: '/v1/public/users' });
  await pipeline.submit({ foreignUserGroupId: 'eve', properties: { kind: 'an organization of the same name' } });
  await pipeline.drained();
  expect((await pipeline.get<EventPage>('/events?userId=eve')).body.total).toBe(2);
  expect((await pipeline.get<EntityRecord>('/users/eve')).body.properties).toEqual({ name: 'Eve' });

  expect((await pipeline.deleteUser('eve')).status).toBe(202);
  const page = await eventually<EventPage>('/events?userId=eve', 200, ({ total }) => total === 0);
  expect(page.results).toEqual([]);
  expect((await pipeline.get<EventPage>('/events?groupId=gone')).body).toMatchObject({ total: 0, results: [] });
  expect((await pipeline.get('/users/eve')).status).toBe(404);
  expect(JSON.stringify((await pipeline.get('/users')).body)).not.toContain('"eve"');
  expect((await pipeline.get('/organizations/eve')).status).toBe(200);

  // The very event that was there before: accepted after the deletion, it shows, however old its timestamp.
  await submit([old]);
  const again = await eventually<EventPage>('/events?userId=eve', 200, ({ total }) => total === 1);
  expect(again.results).toMatchObject([{ uuid: old.uuid, timestamp: old.timestamp }]);
  const user = await eventually<EntityRecord>('/users/eve', 200);
  expect(user).toEqual({ foreignId: 'eve', properties: {}, firstSeenAt: old.timestamp, lastSeenAt: old.timestamp });
});

describe('a request for one workspace never sees the data of another', () => {
  test('on every endpoint', async () => {
    const other = await pipeline.addKey('other');
    const secret = {
      foreignUserGroupId: 'shared',
      foreignUserId: 'shared',
      events: [{ event: 'secret', uuid: '7d444840-9dc0-41d1-b245-5ffdce74fc01', timestamp: '2026-01-01' }],
      properties: { secret: true },
    };
    await pipeline.submit(secret);
    await pipeline.submit({ foreignUserGroupId: 'mine', foreignUserId: 'mine' });
    await pipeline.submit(
      { ...secret, events: [{ ...secret.events[0], event: 'other' }], properties: { other: true } },
      { key: other },
    );
    await until(
      'the other workspace to have its event',
      async () => (await pipeline.get<EventPage>('/events', other)).body.total === 1,
    );
    await eventually<EventPage>('/events?event=secret', 200, ({ total }) => total === 1);
    await eventually<EntityRecord>('/users/mine', 200);
    for (const path of [
      '/events',
      '/events?groupId=shared',
      '/events?userId=shared',
      `/events?uuid=${secret.events[0]?.uuid}`,
      '/events?orderByField=event',
      '/users',
      '/organizations',
      '/users/shared',
      '/organizations/shared',
    ]) {
      const { status, body } = await pipeline.get(path, other);
      expect(status).toBe(200);
      expect(JSON.stringify(body)).not.toMatch(/secret|mine|acme/);
    }
    expect((await pipeline.get('/users/mine', other)).status).toBe(404);
    expect((await pipeline.get('/organizations/mine', other)).status).toBe(404);
    const own = await pipeline.get<EventPage>('/events?limit=1');
    expect((await pipeline.get(`/events?cursor=${own.body.nextCursor}`, other)).status).toBe(400);

    // A deletion there leaves the user here.
    await pipeline.deleteUser('shared', other);
    await until('the deletion there', async () => (await pipeline.get('/users/shared', other)).status === 404);
    expect((await pipeline.get('/users/shared')).status).toBe(200);
    expect((await pipeline.get<EventPage>('/events?event=secret')).body.total).toBe(1);
  });

  test('and a key that may not read, or is not known, reads nothing', async () => {
    const ingestOnly = await pipeline.addKey('test', ['ingest']);
    for (const path of ['/events', '/users', '/organizations', '/users/ada', '/organizations/acme']) {
      expect((await pipeline.get(path, ingestOnly)).status).toBe(403);
      expect((await pipeline.get(path, 'unknown')).status).toBe(401);
      expect((await pipeline.get(path, '')).status).toBe(401);
    }
  });
});
