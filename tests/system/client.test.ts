import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { eventually } from '@sluice/shared/testing/eventually';
import { until } from '@sluice/shared/testing/until';
import { validate, version } from 'uuid';
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest';
import type { ClientError } from '../../packages/client/src/calls.ts';
import { type Client, type ClientOptions, createClient } from '../../packages/client/src/client.ts';
import { type HttpProxy, type RequestFate, type SeenRequest, startHttpProxy } from '../kit/http-proxy.ts';
import type { EventPage } from '../kit/records.ts';
import { type Tenant, takeTenant } from '../kit/shared-pipeline.ts';

const CLIENT = fileURLToPath(new URL('../../packages/client/src/client.ts', import.meta.url));

let pipeline: Tenant;

beforeAll(async () => {
  pipeline = await takeTenant('client');
});
afterAll(async () => {
  for (const { client, proxy } of opened) {
    await client.close({ timeoutMs: 0 });
    await proxy[Symbol.asyncDispose]();
  }
});

interface Tested {
  readonly client: Client;
  readonly proxy: HttpProxy;
  readonly errors: ClientError[];
}

const opened: Tested[] = [];

/** A client whose requests go through a proxy that decides about each. */
async function connect(
  decide: (request: SeenRequest, index: number) => RequestFate = () => 'forward',
  options: Partial<ClientOptions> & { readonly delayMs?: number } = {},
): Promise<Tested> {
  const errors: ClientError[] = [];
  const proxy = await startHttpProxy(pipeline.services['ingest-api'].url, decide, options.delayMs);
  const { key } = pipeline;
  const client = createClient({ url: proxy.url, key, onError: (error) => errors.push(error), ...options });
  const tested = { client, proxy, errors };
  opened.push(tested);
  return tested;
}

function track(client: Client, event: string, count: number, first = 0): void {
  for (let index = first; index < first + count; index += 1) client.track(event, { index }, { userId: 'ada' });
}

/** The property `index` of the stored events of a name, in order. */
async function stored(event: string): Promise<number[]> {
  await pipeline.drained();
  const { body } = await pipeline.get<EventPage>(`/events?event=${event}&limit=1000`);
  return body.results.map(({ properties }) => Number(properties['index'])).sort((a, b) => a - b);
}

function range(count: number, first = 0): number[] {
  return Array.from({ length: count }, (_, index) => first + index);
}

const codes = (errors: readonly ClientError[]) => [...new Set(errors.map(({ code }) => code))];

const UNAVAILABLE = { status: 503, headers: { 'retry-after': '0' }, body: '{"message":"Later."}' } as const;

test.concurrent('calls of each type are stored with what they say', async () => {
  const { client, errors } = await connect(undefined, {
    defaults: () => ({ anonymousId: 'browser-1', context: { app: 'shop', version: 1 } }),
  });
  const timestamp = new Date('2026-03-01T12:00:00.000Z');
  client.identify('grace', { name: 'Grace', plan: 'pro' });
  client.group('acme', { seats: 5 }, { userId: 'grace' });
  client.page('Pricing', { path: '/pricing' }, { timestamp });
  client.track('bought', { amount: 12 }, { userId: 'grace', groupId: 'acme', timestamp, context: { version: 2 } });
  expect(await client.flush({ timeoutMs: 120_000 })).toBe(0);
  expect(errors).toEqual([]);
  await pipeline.drained();
  const events = (await pipeline.get<EventPage>('/events?userId=grace&orderByField=event&identity=raw')).body.results;
  expect(events.map(({ type, event, groupId }) => [type, event, groupId])).toEqual([
    ['identify', 'identify', null],
    ['group', 'group', 'acme'],
    ['track', 'bought', 'acme'],
  ]);
  expect(events[2]).toMatchObject({
    ...{ anonymousId: 'browser-1', properties: { amount: 12 }, timestamp: timestamp.toISOString() },
    context: { version: 2 },
  });
  expect((await pipeline.get<EventPage>('/events?type=page')).body.results).toMatchObject([
    {
      ...{ event: 'Pricing', userId: null, anonymousId: 'browser-1', context: { app: 'shop', version: 1 } },
      properties: { path: '/pricing', name: 'Pricing' },
    },
  ]);
  expect((await pipeline.get('/users/grace')).body).toMatchObject({ properties: { name: 'Grace', plan: 'pro' } });
  expect((await pipeline.get('/organizations/acme')).body).toMatchObject({ properties: { seats: 5 } });
});

test.concurrent('calls whose responses are lost are sent again, and stored once', async () => {
  const { client, proxy, errors } = await connect((_, index) => (index < 2 ? 'lose' : 'forward'));
  track(client, 'lost', 20);
  expect(await client.flush({ timeoutMs: 120_000 })).toBe(0);
  expect(proxy.requests).toHaveLength(3);
  expect(proxy.requests[2]?.calls).toEqual(proxy.requests[0]?.calls);
  expect(await stored('lost')).toEqual(range(20));
  expect(errors).toMatchObject([
    { code: 'request_failed', dropped: 0, status: 0 },
    { code: 'request_failed', dropped: 0 },
  ]);
});

test.concurrent('calls of an outage are delivered after it, in order', async () => {
  let isDown = true;
  const { client, proxy, errors } = await connect(() => (isDown ? 'refuse' : 'forward'), { batchAgeMsMax: 10 });
  track(client, 'outage', 150);
  await until('three errors', async () => errors.length > 2);
  track(client, 'outage', 150, 150);
  isDown = false;
  expect(await client.flush({ timeoutMs: 60_000 })).toBe(0);
  expect(proxy.requests.slice(errors.length).flatMap(({ calls }) => calls.map(indexOf))).toEqual(range(300));
  expect(await stored('outage')).toEqual(range(300));
});

function indexOf(call: Readonly<Record<string, unknown>>): unknown {
  return (call['properties'] as { index: number }).index;
}

test.concurrent('one request is in flight, and whatever happens to requests, the calls of a user arrive in order', async () => {
  const fates: readonly RequestFate[] = ['forward', 'lose', UNAVAILABLE, 'forward', 'refuse', 'forward'];
  const decide = (_: SeenRequest, index: number) => fates[index % fates.length] ?? 'forward';
  const { client, proxy } = await connect(decide, { batchCallsMax: 7, delayMs: 20 });
  for (let index = 0; index < 60; index += 1) {
    client.identify('order', { step: index });
    if (index % 20 === 19) void client.flush();
  }
  expect(await client.flush({ timeoutMs: 120_000 })).toBe(0);
  const { requests } = proxy;
  for (const [index, request] of requests.entries()) {
    if (index > 0) expect(request.startedAt).toBeGreaterThanOrEqual(requests[index - 1]?.endedAt ?? Number.NaN);
  }
  const steps = requests.flatMap(({ calls }) => calls.map((call) => (call['traits'] as { step: number }).step));
  const firstSeen = steps.filter((step, index) => steps.indexOf(step) === index);
  expect(firstSeen).toEqual(range(60));
  await pipeline.drained();
  expect((await pipeline.get('/users/order')).body).toMatchObject({ properties: { step: 59 } });
});

test.concurrent.each([
  ['seconds', () => '2', 2_000],
  ['an HTTP date', () => new Date(Date.now() + 3_000).toUTCString(), 2_000],
])('the next request comes after Retry-After in %s', async (name, retryAfter, waitMs) => {
  const { client, proxy } = await connect((_, index) =>
    index === 0 ? { status: 429, headers: { 'retry-after': retryAfter() }, body: '{}' } : 'forward',
  );
  const event = `limited-${name.length}`;
  track(client, event, 3);
  expect(await client.flush({ timeoutMs: 120_000 })).toBe(0);
  const [first, second] = proxy.requests;
  // Without the header it would be a second at most.
  expect((second?.startedAt ?? 0) - (first?.startedAt ?? 0)).toBeGreaterThan(waitMs - 20);
  expect(await stored(event)).toEqual(range(3));
});

test.concurrent('a batch that is too large is halved until it fits, and a call that never fits is dropped and reported', async () => {
  const { client, proxy, errors } = await connect(({ calls }) =>
    JSON.stringify(calls).length > 5_000 ? { status: 413, body: '{"message":"Too large."}' } : 'forward',
  );
  track(client, 'halved', 90);
  client.track('halved', { index: -1, text: 'x'.repeat(6_000) }, { userId: 'ada' });
  track(client, 'halved', 9, 90);
  expect(await client.flush({ timeoutMs: 120_000 })).toBe(0);
  expect(await stored('halved')).toEqual(range(99));
  expect(errors).toMatchObject([
    { code: 'rejected', message: 'Too large.', dropped: 1, status: 413, call: { properties: { index: -1 } } },
  ]);
  // What fitted is remembered.
  const before = proxy.requests.length;
  track(client, 'halved-again', 5);
  await client.flush();
  expect(proxy.requests.length).toBe(before + 1);
});

test.concurrent('a call that a service or proxy refuses with 400 is found and dropped; the others are delivered', async () => {
  const isBad = (call: Readonly<Record<string, unknown>>) => indexOf(call) === 5;
  const { client, errors } = await connect(({ calls }) =>
    calls.some(isBad) ? { status: 400, headers: {}, body: '{"message":"No."}' } : 'forward',
  );
  track(client, 'refused', 12);
  expect(await client.flush({ timeoutMs: 120_000 })).toBe(0);
  expect(await stored('refused')).toEqual(range(12).filter((index) => index !== 5));
  const lost = errors.filter(({ dropped }) => dropped > 0);
  expect(lost).toMatchObject([{ code: 'rejected', message: 'No.', status: 400, call: { properties: { index: 5 } } }]);
});

test.concurrent('a service or proxy that answers 400 to everything loses no call', async () => {
  const { client, errors } = await connect((_, index) =>
    index < 4 ? { status: 400, headers: {}, body: '{"message":"No."}' } : 'forward',
  );
  track(client, 'misconfigured', 2);
  expect(await client.flush({ timeoutMs: 120_000 })).toBe(0);
  expect(await stored('misconfigured')).toEqual(range(2));
  expect(new Set(errors.map(({ code, dropped, status }) => `${code} ${dropped} ${status}`))).toEqual(
    new Set(['request_failed 0 400']),
  );
});

test.concurrent('of many rejected calls, each one is reported', async () => {
  const { client, errors } = await connect(undefined, { batchCallsMax: 5_000 });
  for (const index of range(2_500)) client.track('', { index }, { userId: 'ada' });
  expect(await client.flush({ timeoutMs: 120_000 })).toBe(0);
  expect(errors.map(({ call }) => indexOf({ ...call }))).toEqual(range(2_500));
  expect(errors.every(({ code, dropped }) => code === 'rejected' && dropped === 1)).toBe(true);
});

test.concurrent('calls that the service rejects are reported with their reason, and the others are stored', async () => {
  const { client, errors, proxy } = await connect();
  track(client, 'mixed', 3);
  client.track('', {}, { userId: 'ada' });
  client.track('mixed', { index: 3, text: 'x'.repeat(300_000) }, { userId: 'ada' });
  client.track('nobody', {});
  track(client, 'mixed', 3, 3);
  expect(await client.flush({ timeoutMs: 120_000 })).toBe(0);
  expect(proxy.requests).toHaveLength(1);
  expect(await stored('mixed')).toEqual(range(6));
  expect(errors).toMatchObject([
    { code: 'rejected', dropped: 1, message: 'event must not be empty.' },
    { code: 'rejected', dropped: 1, message: expect.stringContaining('262144 bytes'), call: { event: 'mixed' } },
    { code: 'rejected', dropped: 1, message: expect.stringContaining('userId') },
  ]);
});

const NOT_SLUICE: readonly (readonly [string, RequestFate])[] = [
  ['401, for a key that is not in force yet', { status: 401, body: '{"message":"The key is unknown."}' }],
  ['403', { status: 403 }],
  ['404, of another service', { status: 404, body: 'not found' }],
  ['a redirect', { status: 301, headers: { location: '/elsewhere' } }],
  ['500', { status: 500 }],
  ['200 with a page of a proxy', { status: 200, body: '<h1>Please sign in</h1>' }],
  ['200 without success', { status: 200, body: '{}' }],
  ['200 with null', { status: 200, body: 'null' }],
  ['200 with another success', { status: 200, body: '{"success":true,"rejected":7}' }],
];

test.concurrent.each(NOT_SLUICE)(
  'after %s nothing is lost: it is reported, and sent again later',
  async (name, fate) => {
    const { client, errors, proxy } = await connect((_, index) => (index < 2 ? fate : 'forward'));
    const event = `again-${name.length}-${typeof fate === 'object' ? fate.status : ''}`;
    track(client, event, 3);
    expect(await client.flush({ timeoutMs: 120_000 })).toBe(0);
    expect(proxy.requests).toHaveLength(3);
    expect(errors).toMatchObject([
      { code: 'request_failed', dropped: 0, status: typeof fate === 'object' ? fate.status : 0 },
      { code: 'request_failed', dropped: 0 },
    ]);
    expect(await stored(event)).toEqual(range(3));
  },
);

test.concurrent('a full queue drops its oldest calls, and says how many', async () => {
  let isDown = true;
  const { client, errors } = await connect(() => (isDown ? UNAVAILABLE : 'forward'), {
    queueCallsMax: 50,
    batchCallsMax: 20,
  });
  track(client, 'overflow', 80);
  await until('three errors', async () => errors.length > 2);
  track(client, 'overflow', 7, 80);
  isDown = false;
  expect(await client.flush({ timeoutMs: 120_000 })).toBe(0);
  const delivered = await stored('overflow');
  expect(delivered.at(-1)).toBe(86);
  const dropped = errors.filter(({ code }) => code === 'queue_full').reduce((sum, error) => sum + error.dropped, 0);
  expect(dropped).toBeGreaterThan(0);
  expect(delivered).toHaveLength(87 - dropped);
  // Calls in flight are never the ones that are dropped.
  expect(dropped).toBeLessThanOrEqual(37);
});

test.concurrent('a full queue drops calls that wait, not those in flight', async () => {
  const { client, proxy, errors } = await connect(undefined, { queueCallsMax: 30, batchCallsMax: 20, delayMs: 300 });
  track(client, 'waiting', 20);
  await until('the first request', async () => proxy.requests.length === 1);
  track(client, 'waiting', 30, 20);
  expect(await client.flush({ timeoutMs: 120_000 })).toBe(0);
  expect(errors).toMatchObject([{ code: 'queue_full', dropped: 20 }]);
  expect(await stored('waiting')).toEqual([...range(20), ...range(10, 40)]);
});

test.concurrent('a queue is also limited in bytes', async () => {
  const { client, errors } = await connect(() => UNAVAILABLE);
  for (let index = 0; index < 20; index += 1) client.track('bytes', { text: 'ä'.repeat(500_000) }, { userId: 'ada' });
  const left = await client.close({ timeoutMs: 100 });
  expect(left).toBe(16);
  const dropped = errors.reduce((sum, error) => sum + error.dropped, 0);
  expect(dropped).toBe(20);
});

test.concurrent('close ends within its time, says how many calls are left, and takes no more', async () => {
  const { client, errors, proxy } = await connect(() => 'stall');
  const other = (await connect(() => 'stall')).client;
  track(client, 'stalled', 3);
  track(other, 'stalled', 3);
  const first = Promise.race([
    other.close().then(() => 'the one that closes within ten seconds'),
    client.close({ timeoutMs: 300 }),
  ]);
  expect(await first).toBe(3);
  track(client, 'stalled', 1);
  expect(errors).toMatchObject([
    { code: 'not_delivered', dropped: 3 },
    { code: 'not_delivered', dropped: 1, message: 'closed' },
  ]);
  // The request was ended as well.
  await until('its end', async () => proxy.requests[0]?.endedAt);
});

test.concurrent('what cannot be sent never throws into the caller', async () => {
  const { client, errors } = await connect(undefined, {
    onError(error) {
      errors.push(error);
      throw new Error('of the handler');
    },
  });
  const circular: Record<string, unknown> = {};
  circular['self'] = circular;
  client.track('bigint', { amount: 1n }, { userId: 'ada' });
  client.track('circular', circular, { userId: 'ada' });
  client.track('huge', { text: 'x'.repeat(262_144) }, { userId: 'ada' });
  track(client, 'after', 1);
  expect(await client.flush({ timeoutMs: 120_000 })).toBe(0);
  expect(codes(errors)).toEqual(['invalid_call', 'rejected']);
  expect(errors).toHaveLength(3);
  expect(await stored('after')).toEqual([0]);
});

/** Runs a program with `client`, and returns what it printed. Fails when it does not end. */
async function runProgram(options: object, code: string): Promise<string> {
  const program = `import { createClient } from ${JSON.stringify(CLIENT)};
const options = ${JSON.stringify({ url: pipeline.services['ingest-api'].url, key: pipeline.key, ...options })};
${code}`;
  const args = ['--input-type=module', '--eval', program];
  const { stdout } = await promisify(execFile)(process.execPath, args, { timeout: 120_000 });
  return stdout;
}

test.concurrent('a process that ends with `await using` has delivered its calls', async () => {
  const printed = await runProgram(
    {},
    `{ await using client = createClient(options);
      for (let index = 0; index < 5; index += 1) client.track('using', { index }, { userId: 'ada' }); }
    console.log('ended');`,
  );
  expect(printed).toBe('ended\n');
  expect(await stored('using')).toEqual(range(5));
});

test.concurrent('a process ends by itself while a batch waits for its time', async () => {
  const printed = await runProgram(
    { batchAgeMsMax: 3_600_000 },
    `createClient(options).track('forgotten', {}, { userId: 'ada' });
    process.on('exit', () => console.log(process.listenerCount('SIGTERM'), process.listenerCount('beforeExit')));`,
  );
  expect(printed).toBe('0 0\n');
});

test.concurrent('a process ends by itself while a client waits to send again, and `close` keeps it alive', async () => {
  const program = (
    end: string,
  ) => `const client = createClient({ ...options, onError: ({ code }) => console.log(code) });
    client.track('unreachable', {}, { userId: 'ada' });
    ${end}`;
  const options = { url: 'http://127.0.0.1:9', batchAgeMsMax: 1 };
  expect(await runProgram(options, program('await new Promise((resolve) => setTimeout(resolve, 100));'))).toMatch(
    /^(request_failed\n)+$/,
  );
  expect(await runProgram(options, program('console.log(await client.close({ timeoutMs: 1_500 }));'))).toMatch(
    /^(request_failed\n)+not_delivered\n1\n$/,
  );
});

test.concurrent('a batch size of 0 sends calls one by one, and no time limit is a long one', async () => {
  const { client, proxy } = await connect(undefined, { batchCallsMax: 0, delayMs: 20 });
  track(client, 'single', 3);
  expect(await client.flush({ timeoutMs: Number.POSITIVE_INFINITY })).toBe(0);
  expect(proxy.requests.map(({ calls }) => calls.length)).toEqual([1, 1, 1]);
  expect(await stored('single')).toEqual(range(3));
});

// Nothing runs beside these: their subject is time.

test('a batch is sent when it is full, or else when it is old; large bodies are compressed', async () => {
  const { proxy } = await connect();
  const options = { url: proxy.url, key: pipeline.key, batchCallsMax: 10 };
  const patient = createClient({ ...options, batchAgeMsMax: 600_000 });
  // At once, without a pause after the client was created.
  track(patient, 'batches', 13);
  await eventually(() => proxy.requests.length).toBe(1);
  expect(await patient.close()).toBe(0);
  const startedAt = performance.now();
  const hurried = createClient({ ...options, batchAgeMsMax: 400 });
  track(hurried, 'batches', 3, 13);
  await eventually(() => proxy.requests.length).toBe(3);
  expect(await hurried.close()).toBe(0);
  expect((proxy.requests[2]?.startedAt ?? 0) - startedAt).toBeGreaterThan(390);
  expect(proxy.requests.map(({ calls, isCompressed }) => [calls.length, isCompressed])).toEqual([
    [10, true],
    [3, false],
    [3, false],
  ]);
});

test('while the clock jumps, uuids grow, and each call has the time that the clock showed', async () => {
  vi.useFakeTimers({ toFake: ['Date'] });
  onTestFinished(() => void vi.useRealTimers());
  const { client, proxy } = await connect((_, index) => (index === 0 ? 'lose' : 'forward'));
  const now = Date.now();
  const clock = [now, now + 3_600_000, now - 3_600_000, now - 3_600_000, now];
  for (const [index, time] of clock.entries()) {
    vi.setSystemTime(time);
    track(client, 'clock', 1, index);
  }
  expect(await client.flush({ timeoutMs: 120_000 })).toBe(0);
  const calls = proxy.requests[0]?.calls ?? [];
  expect(proxy.requests[1]?.calls).toEqual(calls);
  const ids = calls.map(({ messageId }) => String(messageId));
  expect(ids.every((id) => validate(id) && version(id) === 7)).toBe(true);
  expect([...ids].sort()).toEqual(ids);
  expect(calls.map(({ timestamp }) => Date.parse(String(timestamp)))).toEqual(clock);
  expect(await stored('clock')).toEqual(range(5));
});
