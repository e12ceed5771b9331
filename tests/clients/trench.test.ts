import { readFile } from 'node:fs/promises';
import { findFreePorts } from '@sluice/local-stack/ports';
import { eventually } from '@sluice/shared/testing/eventually';
import { until } from '@sluice/shared/testing/until';
import { parseJson } from '@sluice/shared/text/json';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { type Pipeline, startPipeline } from '../kit/pipeline.ts';
import { type Service, startService } from '../kit/service.ts';
import { clickHouseWithSql, SQL_DATABASE, SQL_ENV } from '../kit/sql.ts';

// Trench's routes, as a client of Trench uses them, over the whole pipeline.

const ADMIN_KEY = 'private-key-of-the-admin';
interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly body: Readonly<Record<string, unknown>>;
  readonly text: string;
}

interface ShownEvent {
  readonly uuid: string;
  readonly event: string;
  readonly timestamp: string;
  readonly [name: string]: unknown;
}

interface Keys {
  readonly workspaceId: string;
  readonly databaseName: string;
  readonly publicApiKey: string;
  readonly privateApiKey: string;
}

const stack = new AsyncDisposableStack();
let pipeline: Pipeline;
let trench: Service;
let names = 0;

beforeAll(async () => {
  const clickhouse = stack.use(await clickHouseWithSql());
  pipeline = stack.use(
    await startPipeline({
      kafkaBrokers: inject('kafkaBrokers'),
      ...{ clickhouseUrl: clickhouse.url, name: 'trench', database: SQL_DATABASE },
      envOf: {
        'query-api': {
          ...SQL_ENV,
          QUERY_ANONYMOUS_WORKSPACE: 'test',
        },
      },
    }),
  );
  const [port = 0] = await findFreePorts(1);
  const { services, keysFile } = pipeline;
  trench = startService('trench-api', port, {
    INGEST_URL: services['ingest-api'].url,
    QUERY_URL: services['query-api'].url,
    TRENCH_ADMIN_KEY: ADMIN_KEY,
    API_KEYS_FILE: keysFile,
    RESPONSE_BYTES_MAX: String(1_024 * 1_024),
  });
  stack.defer(() => trench.kill9());
  await trench.ready();
});
afterAll(() => stack.disposeAsync());

async function call(method: string, path: string, key?: string, body?: unknown): Promise<Answer> {
  const headers: Record<string, string> = { 'content-type': 'application/json', accept: 'application/json' };
  if (key !== undefined) headers['authorization'] = `Bearer ${key}`;
  const payload = typeof body === 'string' ? body : JSON.stringify(body);
  const response = await fetch(`${trench.url}${path}`, {
    method,
    headers,
    ...(body !== undefined && { body: payload }),
  });
  const text = await response.text();
  const isJson = response.headers.get('content-type')?.includes('json');
  return {
    ...{ status: response.status, headers: response.headers, text },
    body: (isJson ? parseJson(text) : {}) as Answer['body'],
  };
}

async function createWorkspace(more: object = {}): Promise<Keys> {
  names += 1;
  const { status, body } = await call('POST', '/workspaces', ADMIN_KEY, { name: `Workspace ${names}`, ...more });
  expect(status).toBe(201);
  return body as unknown as Keys;
}

async function send(key: string, ...events: readonly object[]): Promise<readonly ShownEvent[]> {
  const { status, body } = await call('POST', '/events', key, { events });
  expect([status, body['message']]).toEqual([201, undefined]);
  return body['results'] as readonly ShownEvent[];
}

const eventsOf = ({ body }: Answer) => body['results'] as readonly ShownEvent[];
const query = (parameters: Readonly<Record<string, string>>) => `/events?${new URLSearchParams(parameters)}`;

/** Waits until there are events for the parameters, and returns them. */
async function found(key: string, parameters: Readonly<Record<string, string>>): Promise<readonly ShownEvent[]> {
  return await until('the events to be visible', async () => {
    const answer = await call('GET', query(parameters), key);
    expect([answer.status, answer.body['message']]).toEqual([200, undefined]);
    return eventsOf(answer).length > 0 ? eventsOf(answer) : undefined;
  });
}

test('a stop ends the service cleanly', async () => {
  const [port = 0] = await findFreePorts(1);
  const urls = { INGEST_URL: pipeline.services['ingest-api'].url, QUERY_URL: pipeline.services['query-api'].url };
  const other = startService('trench-api', port, urls);
  await other.ready();
  expect(await other.stop()).toBe(0);
  expect(other.log()).toContain('"msg":"stopped"');
});

test('the service says that it runs, as Trench does', async () => {
  expect(await call('GET', '/')).toMatchObject({ status: 200, text: 'Trench server is running' });
  expect((await call('GET', '/livez')).status).toBe(200);
  expect((await call('GET', '/metrics')).text).toContain('http_request');
});

describe('events', () => {
  let keys: Keys;
  beforeAll(async () => {
    keys = await createWorkspace();
  });

  test('an event of nobody is created with the public key and fetched with the private one, without identifiers', async () => {
    const sent = { type: 'track', event: 'User SignedUp', timestamp: '2026-03-01T12:00:00.000Z' };
    const answer = await call('POST', '/events', keys.publicApiKey, { events: [sent] });
    expect(answer).toMatchObject({ status: 201, body: { limit: 1, offset: 0, total: 1 } });
    const [created] = eventsOf(answer);
    expect(created).toEqual({ ...sent, uuid: expect.any(String), parsedAt: expect.any(String) });
    const [event, ...others] = await found(keys.privateApiKey, { uuid: created?.uuid ?? '' });
    expect(others).toEqual([]);
    expect(event).toEqual({ ...created, properties: {}, traits: {}, context: {}, parsedAt: expect.any(String) });
  });

  test('the uuid of the request is not that of the event, so that every request has its own events', async () => {
    const event = { uuid: '123e4567-e89b-12d3-a456-426614174001', type: 'track', event: 'User Logged In' };
    const identifiers = { userId: 'user-123', instanceId: 'instance-456' };
    const [first] = await send(keys.publicApiKey, { ...event, ...identifiers });
    await send(keys.publicApiKey, { ...event, ...identifiers });
    const uuid = first?.uuid ?? '';
    const results = await found(keys.privateApiKey, { uuid, event: event.event, ...identifiers });
    expect(results).toHaveLength(1);
    expect(results[0]).toMatchObject({ uuid, event: event.event, ...identifiers, timestamp: first?.timestamp });
  });

  test('properties, traits and context are filters of equality, as JSON or one by one', async () => {
    const documents = {
      properties: { plan: 'premium', country: 'USA', seats: 5, 'a[prefix]': 'x' },
      traits: { vip: true },
      context: { page: { path: '/home' } },
    };
    const [created] = await send(keys.publicApiKey, { type: 'track', event: 'Updated', userId: 'u', ...documents });
    await send(keys.publicApiKey, {
      ...{ type: 'track', event: 'Updated', userId: 'u' },
      properties: { plan: 'premium', country: 'USA', seats: 51, 'a[prefix]': 'xyz' },
    });
    await until('both events', async () => (await found(keys.privateApiKey, { event: 'Updated' })).length === 2);
    const [event] = await found(keys.privateApiKey, { uuid: created?.uuid ?? '' });
    expect(event).toMatchObject(documents);
    for (const parameters of [
      { properties: '{"plan":"premium","seats":5}' },
      { properties: '{"a[prefix]":"x"}' },
      { traits: '{"vip":true}' },
      { context: '{"page":{"path":"/home"}}' },
      { 'properties.seats': '5', 'properties.plan[ne]': 'free' },
    ]) {
      const results = await found(keys.privateApiKey, { event: 'Updated', ...parameters });
      expect(results.map(({ uuid }) => uuid)).toEqual([created?.uuid]);
    }
    const none = await call('GET', query({ properties: '{"plan":"premium","country":"Denmark"}' }), keys.privateApiKey);
    expect(none.body).toMatchObject({ results: [], total: 0 });
  });

  test('identify and group set the properties of the user and the organization', async () => {
    const { databaseName, publicApiKey, privateApiKey } = await createWorkspace({ databaseName: 'trench_traits' });
    expect(databaseName).toBe('trench_traits');
    // As analytics-plugin-trench sends them.
    await send(
      publicApiKey,
      { anonymousId: 'a-1', userId: 'a-1', event: '$pageview', properties: { path: '/' }, type: 'track' },
      { type: 'identify', event: 'identify', userId: 'ada', properties: { $set: { plan: 'pro' }, $set_once: {} } },
      { type: 'group', event: 'group', userId: 'ada', groupId: 'acme', traits: { name: 'Acme' } },
    );
    await pipeline.drained();
    const user = await pipeline.get('/users/ada', privateApiKey);
    expect(user.body).toMatchObject({ properties: { plan: 'pro' } });
    const organization = await pipeline.get('/organizations/acme', privateApiKey);
    expect(organization.body).toMatchObject({ properties: { name: 'Acme' } });
    const ofAcme = await found(privateApiKey, { 'organization.properties.name': 'Acme' });
    expect(ofAcme.map(({ event }) => event)).toEqual(['group']);
    const ofOthers = await found(privateApiKey, { 'user.properties.plan[ne]': 'pro' });
    expect(ofOthers.map(({ event }) => event)).toEqual(['$pageview']);
  });

  test('numbers keep all of their digits', async () => {
    const body = '{"events":[{"type":"track","event":"Digits","properties":{"n":1729384756102938475}}]}';
    const answer = await call('POST', '/events', keys.publicApiKey, body);
    expect(answer.status).toBe(201);
    expect(answer.text).toContain('1729384756102938475');
    const results = await found(keys.privateApiKey, { properties: '{"n":1729384756102938475}' });
    expect(results).toHaveLength(1);
    expect((await call('GET', query({ event: 'Digits' }), keys.privateApiKey)).text).toContain('1729384756102938475');
  });

  test('an event that is sent again with its messageId is one event', async () => {
    const event = {
      type: 'track',
      event: 'Sent again',
      userId: 'u',
      messageId: 'a-1',
      timestamp: '2026-03-01T12:00:00Z',
    };
    const [first] = await send(keys.publicApiKey, event);
    const [second] = await send(keys.publicApiKey, event);
    expect(second?.uuid).toBe(first?.uuid);
    await pipeline.drained();
    expect((await call('GET', query({ event: event.event }), keys.privateApiKey)).body['total']).toBe(1);
  });

  test('a malformed timestamp counts as absent, and stops nothing', async () => {
    const event = { type: 'track', event: 'Malformed', userId: 'u', timestamp: 'the day before yesterday' };
    const [sent] = await send(keys.publicApiKey, event);
    await pipeline.drained();
    const page = await call('GET', query({ event: 'Malformed' }), keys.privateApiKey);
    const { uuid, timestamp } = sent as ShownEvent;
    expect(eventsOf(page)).toMatchObject([{ uuid, timestamp, context: { sentTimestamp: event.timestamp } }]);
  });

  test('a timestamp that is far ahead is refused with its request, and stops nothing', async () => {
    const events = [
      { type: 'track', event: 'Not stored', userId: 'u' },
      { type: 'track', event: 'Not stored', userId: 'u', timestamp: '2999-01-01T00:00:00Z' },
    ];
    const refused = await call('POST', '/events', keys.publicApiKey, { events });
    expect(refused.body).toMatchObject({
      ...{ statusCode: 400, error: 'Bad Request', message: expect.stringContaining('timestamp must be') },
      ...{ status: 400, code: 'invalid_request', errors: [{ path: 'events.1', reason: 'invalid_event' }] },
    });
    expect(refused.headers.get('content-type')).toContain('application/problem+json');
    await send(keys.publicApiKey, { type: 'track', event: 'Stored after it', userId: 'u' });
    await found(keys.privateApiKey, { event: 'Stored after it' });
    expect((await call('GET', query({ event: 'Not stored' }), keys.privateApiKey)).body['total']).toBe(0);
  });

  test('a page has 1,000 events at most, also without limit, and the exact total', async () => {
    const { publicApiKey, privateApiKey } = await createWorkspace();
    const events = Array.from({ length: 1_100 }, (_, index) => ({
      ...{ type: 'track', event: 'many', userId: `user-${String(index).padStart(4, '0')}` },
      timestamp: new Date(Date.UTC(2026, 2, 1, 0, 0, index)).toISOString(),
    }));
    expect(await send(publicApiKey, ...events)).toHaveLength(1_100);
    await pipeline.drained();
    const page = await call('GET', '/events', privateApiKey);
    expect(page.body).toMatchObject({ limit: 1_000, offset: 0, total: 1_100 });
    expect(eventsOf(page)).toHaveLength(1_000);
    expect(eventsOf(page)[0]?.['userId']).toBe('user-1099');
    const order = { orderByField: 'user_id', orderByDirection: 'ASC' };
    const last = await call('GET', query({ ...order, limit: '2000', offset: '1099' }), privateApiKey);
    expect(last.body).toMatchObject({ limit: 1_000, offset: 1_099, total: 1_100, results: [{ userId: 'user-1099' }] });
    const range = { startDate: '2026-03-01', endDate: '2026-03-01T00:00:09Z' };
    expect((await call('GET', query(range), privateApiKey)).body['total']).toBe(10);
    expect((await call('GET', query({ endDate: '2026-03-01' }), privateApiKey)).body['total']).toBe(1);
  });

  test('a response beyond the limit is refused rather than held in memory', async () => {
    const { publicApiKey, privateApiKey } = await createWorkspace();
    const properties = { text: 'x'.repeat(100_000) };
    await send(publicApiKey, ...Array.from({ length: 12 }, () => ({ event: 'large', properties })));
    await found(privateApiKey, { limit: '1' });
    await pipeline.drained();
    expect((await call('GET', '/events', privateApiKey)).body).toMatchObject({
      ...{ statusCode: 400, code: 'query_too_expensive', message: expect.stringContaining('ask for fewer') },
    });
  });

  test('without ingest-api there is no 201', async () => {
    const event = { type: 'track', event: 'While away', userId: 'u' };
    await pipeline.services['ingest-api'].kill9();
    const refused = await call('POST', '/events', keys.publicApiKey, { events: [event] });
    expect(refused.body).toMatchObject({ statusCode: 503, code: 'event_log_unavailable' });
    expect(refused.headers.get('retry-after')).toBe('5');
    const readiness = async () => (await call('GET', '/readyz')).body;
    await eventually(readiness).toMatchObject({ missing: ['ingest-api cannot be reached'] });
    await pipeline.restart('ingest-api');
    await send(keys.publicApiKey, event);
    await trench.ready();
  });

  test('the id of a request is that of the services as well', async () => {
    const response = await fetch(`${trench.url}/events?limit=x`, {
      headers: { authorization: `Bearer ${keys.privateApiKey}`, 'x-request-id': 'mine-1' },
    });
    expect(response.headers.get('x-request-id')).toBe('mine-1');
    expect(await response.json()).toMatchObject({ statusCode: 400, requestId: 'mine-1', errors: [{ path: 'limit' }] });
  });
});

describe('queries', () => {
  let keys: Keys;
  let uuid: string;
  beforeAll(async () => {
    keys = await createWorkspace();
    const event = { type: 'track', event: 'Paid', userId: 'jane', groupId: 'acme', instanceId: 'eu-1' };
    const [created] = await send(keys.publicApiKey, { ...event, properties: { amount: 9.5 } });
    uuid = created?.uuid ?? '';
    await found(keys.privateApiKey, { uuid });
  });

  test("rows have Trench's names and parsed JSON, a list of them for each statement", async () => {
    const answer = await call('POST', '/queries', keys.privateApiKey, {
      queries: [
        `SELECT * FROM events WHERE uuid = '${uuid}'`,
        "SELECT userId, groupId, instance_id, 'userId' AS text FROM events WHERE group_id = 'acme'",
        'SELECT count() AS event_count FROM events WHERE parsed_at > timestamp - 1',
      ],
    });
    expect(answer).toMatchObject({ status: 201, body: { limit: 0, offset: 0, total: 3 } });
    expect(answer.body['results']).toEqual([
      [
        expect.objectContaining({
          ...{ uuid, event: 'Paid', userId: 'jane', groupId: 'acme', instanceId: 'eu-1' },
          ...{ properties: { amount: 9.5 }, parsedAt: expect.any(String) },
        }),
      ],
      [{ userId: 'jane', groupId: 'acme', instanceId: 'eu-1', text: 'userId' }],
      [{ eventCount: 1 }],
    ]);
  });

  test.each([
    ['SELECT colour FROM events', 'colour'],
    ['INSERT INTO events VALUES (1)', 'SQL'],
    ['DROP TABLE events', 'SQL'],
    ["SELECT file('/etc/passwd')", 'file'],
    ["SELECT arrayMap(file, ['/etc/passwd'])", 'file'],
    ['SELECT * FROM system.tables', 'SQL'],
  ])('%s is refused', async (sql, message) => {
    const { body } = await call('POST', '/queries', keys.privateApiKey, { queries: ['SELECT 1', sql] });
    expect(body).toMatchObject({ statusCode: 400, code: 'invalid_sql', message: expect.stringContaining(message) });
  });
});

test('a request has 20 statements at most', async () => {
  const { privateApiKey } = await createWorkspace();
  const queries = (count: number) => ({ queries: Array.from({ length: count }, (_, index) => `SELECT ${index}`) });
  expect((await call('POST', '/queries', privateApiKey, queries(20))).body['total']).toBe(20);
  expect((await call('POST', '/queries', privateApiKey, queries(21))).status).toBe(400);
});

describe('keys', () => {
  test('a key of the other kind, an unknown one and none get 401', async () => {
    const { publicApiKey, privateApiKey } = await createWorkspace();
    const event = { events: [{ type: 'track', event: 'e', userId: 'u' }] };
    const sql = { queries: ['SELECT 1'] };
    const statuses = await Promise.all([
      call('GET', '/events', publicApiKey),
      call('POST', '/queries', publicApiKey, sql),
      call('POST', '/events', privateApiKey, event),
      ...[undefined, 'nobody', ADMIN_KEY].flatMap((key) => [
        call('GET', '/events', key),
        call('POST', '/queries', key, sql),
        call('POST', '/events', key, event),
      ]),
    ]);
    for (const { status, body } of statuses) {
      expect([status, body['statusCode'], body['error']]).toEqual([401, 401, 'Unauthorized']);
    }
  });

  test('/workspaces is for the admin alone: any other key gets exactly 401', async () => {
    const { workspaceId, publicApiKey, privateApiKey } = await createWorkspace();
    const path = `/workspaces/${workspaceId}`;
    for (const key of [privateApiKey, publicApiKey, pipeline.key, 'nobody', undefined]) {
      expect((await call('POST', '/workspaces', key, { name: 'Mine' })).status).toBe(401);
      expect((await call('PUT', path, key, { name: 'Mine' })).status).toBe(401);
      expect((await call('GET', path, key)).status).toBe(401);
      expect((await call('DELETE', path, key)).status).toBe(401);
    }
    expect((await call('GET', path, ADMIN_KEY)).status).toBe(200);
  });

  test('a workspace sees its own events only', async () => {
    const [one, other] = [await createWorkspace(), await createWorkspace()];
    await send(one.publicApiKey, { type: 'track', event: 'secret', userId: 'u' });
    await found(one.privateApiKey, { event: 'secret' });
    expect((await call('GET', '/events', other.privateApiKey)).body['total']).toBe(0);
    const { body } = await call('POST', '/queries', other.privateApiKey, { queries: ['SELECT event FROM events'] });
    expect(body['results']).toEqual([[]]);
  });
});

describe('workspaces', () => {
  test('a workspace is created, read, changed and removed, and its keys end', async () => {
    const properties = { region: 'eu' };
    const created = await createWorkspace({ name: ' Acme ', isDefault: true, properties });
    const { workspaceId, publicApiKey, privateApiKey, ...rest } = created;
    expect(rest).toEqual({
      name: 'Acme',
      databaseName: workspaceId,
      isDefault: true,
      createdAt: expect.any(String),
      properties,
    });
    const path = `/workspaces/${workspaceId}`;
    expect((await call('GET', path, ADMIN_KEY)).body).toEqual({ workspaceId, ...rest });
    const changed = await call('PUT', path, ADMIN_KEY, { name: 'Acme Inc.' });
    expect(changed).toMatchObject({ status: 200, body: { workspaceId, ...rest, name: 'Acme Inc.' } });
    expect((await call('PUT', path, ADMIN_KEY, { name: 'Acme', properties: {} })).body).toMatchObject({
      properties: {},
    });

    const file = await readFile(pipeline.keysFile, 'utf8');
    expect(file).not.toContain(publicApiKey);
    expect(file).not.toContain(privateApiKey);

    expect((await call('DELETE', path, ADMIN_KEY)).status).toBe(200);
    expect((await call('GET', path, ADMIN_KEY)).body).toMatchObject({
      statusCode: 404,
      message: 'Workspace not found.',
    });
    expect((await call('PUT', path, ADMIN_KEY, { name: 'a' })).status).toBe(404);
    expect((await call('DELETE', path, ADMIN_KEY)).status).toBe(404);
    await until('the keys to end', async () => {
      const event = { type: 'track', event: 'e', userId: 'u' };
      const statuses = [
        (await call('GET', '/events', privateApiKey)).status,
        (await call('POST', '/events', publicApiKey, { events: [event] })).status,
      ];
      return statuses.every((status) => status === 401);
    });
    expect((await pipeline.get('/events?limit=0', pipeline.key)).status).toBe(200);
  });

  test('what a workspace may add to the keys file has a limit', async () => {
    const properties = { text: 'x'.repeat(17_000) };
    expect((await call('POST', '/workspaces', ADMIN_KEY, { name: 'Large', properties })).status).toBe(413);
  });

  test('no two workspaces have one name or one databaseName', async () => {
    const { databaseName, ...first } = await createWorkspace({ name: 'Taken', databaseName: 'taken' });
    const refused = await call('POST', '/workspaces', ADMIN_KEY, { name: 'Taken' });
    expect(refused.body).toMatchObject({ statusCode: 400, message: expect.stringContaining("'Taken'") });
    expect((await call('POST', '/workspaces', ADMIN_KEY, { name: 'Free', databaseName })).status).toBe(400);
    const second = await createWorkspace();
    expect((await call('PUT', `/workspaces/${second.workspaceId}`, ADMIN_KEY, { name: 'Taken' })).status).toBe(400);
    expect((await call('PUT', `/workspaces/${first.workspaceId}`, ADMIN_KEY, { name: 'Taken' })).status).toBe(200);
  });

  test.each([
    {},
    { name: '  ' },
    { name: 7 },
    { name: 'a', databaseName: 'a b' },
    { name: 'a', properties: [] },
    { name: 'a', isDefault: 'yes' },
  ])('%j is refused', async (body) => {
    expect((await call('POST', '/workspaces', ADMIN_KEY, body)).body).toMatchObject({
      ...{ statusCode: 400, error: 'Bad Request', code: 'invalid_request' },
    });
  });
});
