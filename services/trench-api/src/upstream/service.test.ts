import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { createLogger } from '@sluice/shared/base/log';
import type { FastifyInstance } from 'fastify';
import { Registry } from 'prom-client';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { buildApp } from '../app.ts';
import { configSchema } from '../config.ts';

// What trench-api does with responses that the services do not give while all is well.

let server: Server;
let app: FastifyInstance;
let respond: (request: IncomingMessage, response: ServerResponse) => void;
let received: IncomingMessage[];

async function start(env: Readonly<Record<string, string>> = {}): Promise<void> {
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const config = configSchema.parse({ INGEST_URL: url, QUERY_URL: url, ...env });
  app = buildApp(config, { logger: createLogger('trench-api', 'silent'), registry: new Registry(), now: Date.now });
  await app.ready();
}

beforeEach(async () => {
  received = [];
  server = createServer((request, response) => {
    received.push(request);
    respond(request, response);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
});
afterEach(async () => {
  await app.close();
  server.closeAllConnections();
  server.close();
});

function json(status: number, body: unknown, headers: Readonly<Record<string, string>> = {}) {
  return (_request: IncomingMessage, response: ServerResponse) => {
    response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body));
  };
}

const get = (headers = {}) => app.inject({ url: '/events', headers: { authorization: 'Bearer key', ...headers } });

const PAGE = { limit: 1_000, offset: 0, results: [], nextCursor: null, total: 0 };

test('the key, the id and the trace of a request go on', async () => {
  await start();
  respond = json(200, PAGE);
  const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
  const response = await get({ 'x-request-id': 'mine', traceparent });
  expect([response.statusCode, response.headers['x-request-id']]).toEqual([200, 'mine']);
  expect(received[0]?.headers).toMatchObject({ authorization: 'Bearer key', 'x-request-id': 'mine', traceparent });
});

test.each([
  ['rate_limited', 429, 'rate_limited', 429],
  ['overloaded', 503, 'overloaded', 503],
  ['missing_scope', 403, 'unauthorized', 401],
  ['not_found', 404, 'internal', 500],
  ['internal', 500, 'internal', 500],
  ['a code of a later version', 409, 'store_unavailable', 503],
] as const)('%s of a service becomes %s', async (code, status, expected, expectedStatus) => {
  await start();
  respond = json(status, { code, detail: 'Why.' }, { 'retry-after': '7' });
  const response = await get();
  expect(response.json()).toMatchObject({ code: expected, statusCode: expectedStatus });
  if (expected === code && status !== 500) {
    expect(response.json().message).toBe('Why.');
    expect(response.headers['retry-after']).toBe('7');
  }
});

test('no cache keeps a response', async () => {
  await start();
  respond = json(200, PAGE);
  expect((await get()).headers['cache-control']).toBe('no-store');
});

test('a total that could not be counted is an error, never null', async () => {
  await start();
  respond = json(200, { ...PAGE, total: null });
  expect((await get()).json()).toMatchObject({ code: 'query_too_expensive', statusCode: 400 });
});

test('a redirect is not followed: it would take the key elsewhere', async () => {
  await start();
  respond = json(307, {}, { location: '/elsewhere' });
  expect((await get()).json()).toMatchObject({ code: 'store_unavailable' });
  expect(received).toHaveLength(1);
});

test('what is not JSON is no response of a service', async () => {
  await start();
  respond = (_request, response) => response.end('<html>');
  expect((await get()).json()).toMatchObject({ code: 'store_unavailable', statusCode: 503 });
});

test('a service that does not respond in time gets no more of it', async () => {
  await start({ SERVICE_TIMEOUT_MS: '100' });
  respond = () => undefined;
  expect((await get()).json()).toMatchObject({ code: 'store_unavailable', statusCode: 503 });
});

test('what a request reads is held in a budget of all requests', async () => {
  await start({ PENDING_BYTES_MAX: String(1_024 * 1_024) });
  respond = json(200, { ...PAGE, padding: 'x'.repeat(300_000) });
  expect((await get()).json()).toMatchObject({ code: 'overloaded', statusCode: 503 });
  respond = json(200, PAGE);
  // Each is released with its response.
  for (let count = 0; count < 100; count += 1) expect((await get()).statusCode).toBe(200);
  const payload = JSON.stringify({ events: ['x'.repeat(300_000)] });
  const headers = { authorization: 'Bearer key', 'content-type': 'application/json' };
  const post = await app.inject({ method: 'POST', url: '/events', headers, payload });
  expect(post.json()).toMatchObject({ code: 'overloaded' });
});

test('a client that leaves ends what it asked for', async () => {
  await start();
  const asked = Promise.withResolvers<IncomingMessage>();
  respond = (request) => asked.resolve(request);
  await app.listen({ host: '127.0.0.1', port: 0 });
  const client = connect((app.server.address() as AddressInfo).port, '127.0.0.1');
  client.write('GET /events HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer key\r\n\r\n');
  const request = await asked.promise;
  const closed = once(request.socket, 'close');
  client.destroy();
  await closed;
});

test('pages of the origins that are named may send and read, and others may not', async () => {
  await start({ CORS_ORIGINS: 'https://acme.example' });
  respond = json(200, PAGE);
  const headers = { 'access-control-request-method': 'POST', 'access-control-request-headers': 'authorization' };
  const allowedTo = async (origin: string) => {
    const preflight = await app.inject({ method: 'OPTIONS', url: '/events', headers: { ...headers, origin } });
    const response = await get({ origin });
    expect(preflight.statusCode).toBe(204);
    return [preflight, response].map((one) => one.headers['access-control-allow-origin']);
  };
  expect(await allowedTo('https://acme.example')).toEqual(['https://acme.example', 'https://acme.example']);
  expect(await allowedTo('https://other.example')).toEqual([undefined, undefined]);
});

test('calls that ingest-api alone refuses are named, and so is that others are stored', async () => {
  await start();
  respond = json(200, {
    ...{ success: true, rejectedCount: 1 },
    rejected: [{ index: 1, code: 'too_large', message: 'It is too large.' }],
  });
  const payload = { events: [{ event: 'a' }, { event: 'b' }, { event: 'c' }] };
  const response = await app.inject({
    method: 'POST',
    url: '/events',
    headers: { authorization: 'Bearer key' },
    payload,
  });
  expect(response.json()).toMatchObject({
    ...{ statusCode: 400, message: 'events.1 cannot be taken: It is too large. The other 2 events are stored.' },
    errors: [{ path: 'events.1' }],
  });
});
