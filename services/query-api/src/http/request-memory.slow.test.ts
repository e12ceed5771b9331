import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { MemoryBudget } from '@sluice/shared/http/memory-budget';
import { eventually } from '@sluice/shared/testing/eventually';
import Fastify from 'fastify';
import { afterAll, afterEach, beforeAll, expect, inject, test, vi } from 'vitest';
import type { ClickHouseReader, ReadRequest, RowBatches } from '../store/clickhouse-reader.ts';
import { metric } from '../testing/load.ts';
import { anEvent, aRegister, type QueryService, startQuery } from '../testing/query-service.ts';
import { readerWith } from '../testing/reader-with.ts';
import { RequestMemory } from './request-memory.ts';

// What requests hold until their responses are sent: workspace `a` fills its share, workspace `b` reads meanwhile.

const MEBIBYTE = 1_024 * 1_024;
const BUDGET_BYTES = 24 * MEBIBYTE;
/** So many that no request waits for a slot. */
const SLOTS = '300';

/** When a query is held. */
type Gate = 'before' | 'after';

let query: QueryService;
/** Holds the queries of workspace `a` that begin: before they are sent, or when all of their rows are read. */
let gate: Gate | undefined;
/** Opens all gates of a test. */
let opening = new AbortController();
const sockets: Socket[] = [];

beforeAll(async () => {
  const slots = [
    'QUERY_CONNECTIONS_MAX',
    'QUERY_CONCURRENCY_PER_WORKSPACE',
    'REPORT_CONNECTIONS_MAX',
    'REPORT_CONCURRENCY_PER_WORKSPACE',
  ];
  const env = Object.fromEntries(slots.map((name) => [name, SLOTS]));
  query = await startQuery(
    inject('clickhouseUrl'),
    { ...env, QUERY_PENDING_BYTES_MAX: String(BUDGET_BYTES) },
    (reader) => readerWith(reader, { read: (request) => heldAtGate(request, reader) }),
  );
  await query.app.listen({ host: '127.0.0.1', port: 0 });
  await storeLarge('a');
  await query.store('b', [anEvent()]);
});
afterAll(() => query.stop());
afterEach(async () => {
  opening.abort();
  opening = new AbortController();
  gate = undefined;
  for (const socket of sockets.splice(0)) socket.destroy();
  await eventually(reservedBytes).toBe(0);
});

async function* heldAtGate(request: ReadRequest, reader: ClickHouseReader): RowBatches {
  const { signal } = opening;
  const opened = async () => {
    if (!signal.aborted) await once(signal, 'abort');
  };
  // Some queries come before those for users, or for an export.
  const isFirst = /entity_candidates|event_sizes/.test(request.queryId);
  const held = request.params['workspace'] === 'a' && !isFirst ? gate : undefined;
  if (held === 'before') await opened();
  let rows = 0;
  for await (const batch of reader.read(request)) {
    rows += batch.length;
    yield batch;
  }
  if (held === 'after' && rows > 0) await opened();
}

/** Stores what is large in every route: 30 events of 80 kB and one of 8,000 names, 1,000 names of events, ten users. */
async function storeLarge(workspace: string): Promise<void> {
  const properties = () => JSON.stringify({ text: randomBytes(60_000).toString('base64') });
  const names = Object.fromEntries(Array.from({ length: 8_000 }, (_, index) => [`name-of-a-property-${index}`, 1]));
  await query.store(workspace, [
    ...Array.from({ length: 30 }, () => anEvent({ properties: properties() })),
    anEvent({ type: 'names', properties: JSON.stringify(names) }),
    ...Array.from({ length: 1_000 }, (_, index) => anEvent({ event: `${index}${'n'.repeat(500)}` })),
  ]);
  const ids = Array.from({ length: 10 }, (_, index) => `user-${index}`);
  const seen = { first_seen_at: 1_000, last_seen_at: 2_000, version: 5 };
  await query.insert(
    'entities',
    ids.map((id) => ({ workspace_id: workspace, kind: 'user', id, ...seen })),
  );
  await query.insert(
    'entity_properties',
    ids.map((id) => ({
      ...{ workspace_id: workspace, kind: 'user', id, property: 'text' },
      register: aRegister(5, 'set', JSON.stringify('x'.repeat(200_000))),
    })),
  );
}

const reservedBytes = () => metric(query, 'sluice_query_reserved_bytes');

const YEARS = 'startDate=2014-01-01&endDate=2026-12-31';
const MINUTES = 'startDate=2026-03-01&endDate=2026-03-03';
const SERIES = `/events/series?${MINUTES}&interval=minute&groupBy=event&groups=100`;

test.each<{ what: string; urls: readonly string[]; held?: Gate }>([
  { what: 'parameters', urls: many(150, `/events?event=${'e'.repeat(15_000)}`), held: 'before' },
  { what: 'pages', urls: many(30, '/events?properties.text[exists]=true&total=none') },
  { what: 'names', urls: many(30, '/events/names?limit=1000') },
  { what: 'names of properties', urls: many(30, '/events/properties?type=names') },
  { what: 'values', urls: many(10, '/events/values?property=properties.text') },
  { what: 'series', urls: many(10, SERIES) },
  { what: 'retention', urls: many(20, `/events/retention?${YEARS}&periods=60`) },
  { what: 'users', urls: many(10, '/users') },
  { what: 'exports', urls: [...many(2, SERIES), '/events/export?startDate=2026-01-01'] },
])('$what of one workspace are refused before they take the memory of the others', async ({ urls, held = 'after' }) => {
  gate = held;
  const refused: string[] = [];
  let answered = 0;
  const responses = urls.map(async (url) => {
    // The export comes last: what it takes is not there any more.
    if (url.startsWith('/events/export')) await eventually(reservedBytes).toBeGreaterThan(BUDGET_BYTES / 4);
    const response = await query.app.inject({ url, headers: { authorization: 'Bearer a' } });
    answered += 1;
    if (response.statusCode === 503) refused.push(`${response.json().code}, ${response.headers['retry-after']}`);
    return response;
  });
  await eventually(() => refused.length).toBeGreaterThan(0);
  // One key can hold half of the memory.
  expect(await reservedBytes()).toBeLessThanOrEqual(BUDGET_BYTES / 2);
  const { status, body } = await query.get('/events', 'b');
  expect([status, body.total]).toEqual([200, 1]);
  opening.abort();
  const statuses = (await Promise.all(responses)).map(({ statusCode }) => statusCode);
  expect(answered).toBe(urls.length);
  expect(statuses.filter((one) => one !== 200 && one !== 503)).toEqual([]);
  expect(new Set(refused)).toEqual(new Set(['overloaded, 2']));
  await eventually(reservedBytes).toBe(0);
  const again = await query.app.inject({ url: urls[0] ?? '', headers: { authorization: 'Bearer a' } });
  expect(again.statusCode).toBe(200);
});

function many(count: number, url: string): readonly string[] {
  return Array.from({ length: count }, () => url);
}

test('while there is no memory for compressing a response, it is sent as it is', async () => {
  const url = '/events/names?limit=10';
  const headers = { authorization: 'Bearer a', 'accept-encoding': 'br' };
  expect((await query.app.inject({ url, headers })).headers['content-encoding']).toBe('br');
  // Requests whose parameters leave a key less than a compressor takes, and more than a small response.
  const filter = `/events?event=${'e'.repeat(15_000)}`;
  const requestBytes = 16 * 1_024 + 8 * filter.length;
  const requests = Math.floor((BUDGET_BYTES / 2 - MEBIBYTE) / requestBytes);
  gate = 'before';
  const pages = many(requests, filter).map((page) =>
    query.app.inject({ url: page, headers: { authorization: 'Bearer a' } }),
  );
  await eventually(reservedBytes).toBeGreaterThanOrEqual(requests * requestBytes);
  gate = undefined;
  const plain = await query.app.inject({ url, headers });
  expect([plain.statusCode, plain.headers['content-encoding']]).toEqual([200, undefined]);
  opening.abort();
  expect((await Promise.all(pages)).filter(({ statusCode }) => statusCode !== 200)).toEqual([]);
});

/** Sends requests at once over one connection, and reads nothing. */
function sendTogether(paths: readonly string[]): Socket {
  const { port } = query.app.server.address() as AddressInfo;
  const socket = connect(port, '127.0.0.1').on('error', () => undefined);
  sockets.push(socket);
  socket.write(paths.map((path) => `GET ${path} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer a\r\n\r\n`).join(''));
  return socket;
}

test.each([
  ['/events?event=e', 'sluice_query_reserved_bytes', 3 * 16 * 1_024],
  ['/users', 'sluice_queries{pool="entities",state="running"}', 3],
  ['/events/stream', 'sluice_stream_listeners', 3],
])('a client that sends several requests for %s at once and leaves gives everything back', async (path, name, held) => {
  gate = 'before';
  const socket = sendTogether([path, path, path]);
  await eventually(() => metric(query, name)).toBeGreaterThanOrEqual(held);
  socket.destroy();
  await eventually(() => metric(query, name)).toBe(0);
});

test('a client that does not read its response is cut off after some time, and a stream is not', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  const budget = new MemoryBudget(BUDGET_BYTES);
  const memory = new RequestMemory(budget, { QUERY_TIMEOUT_MS: 10_000, COUNT_TIMEOUT_MS: 1_000 });
  const app = Fastify();
  try {
    memory.register(app);
    app.addHook('onRequest', async (request, reply) => memory.open(request, reply, { hash: 'k', workspace: 'a' }));
    app.get('/page', () => new Promise(() => undefined));
    app.get('/stream', { config: { endless: true } }, () => new Promise(() => undefined));
    await app.listen({ host: '127.0.0.1', port: 0 });
    const { port } = app.server.address() as AddressInfo;
    const [page, stream] = ['/page', '/stream'].map((path) => {
      const socket = connect(port, '127.0.0.1').on('error', () => undefined);
      sockets.push(socket);
      socket.write(`GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`);
      return socket.resume();
    });
    while (budget.reservedBytes < 2 * 16 * 1_024) await nextTurn();
    const closed = once(page as Socket, 'close');
    vi.advanceTimersByTime(82_000);
    await closed;
    expect(stream?.closed).toBe(false);
  } finally {
    vi.useRealTimers();
    for (const socket of sockets.splice(0)) socket.destroy();
    await app.close();
  }
});
