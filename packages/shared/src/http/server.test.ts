import { once } from 'node:events';
import { METHODS } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { PassThrough } from 'node:stream';
import { text } from 'node:stream/consumers';
import { promisify } from 'node:util';
import type { FastifyInstance } from 'fastify';
import { Registry } from 'prom-client';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { createLogger } from '../base/log.ts';
import { eventually } from '../testing/eventually.ts';
import { acceptJsonBodies } from './json-body.ts';
import { refuseOtherMethods } from './other-methods.ts';
import { Problem } from './problem.ts';
import { DROPPED_BYTES_MAX } from './response-end.ts';
import { createHttpServer, listening } from './server.ts';

const OPTIONS = { logger: createLogger('test', 'silent'), readiness: () => [] };

function createServer(): FastifyInstance {
  return createHttpServer({ ...OPTIONS, registry: new Registry() });
}

test.each([
  ['XML', 'text/xml', '<a/>'],
  ['broken JSON', 'application/json', '{'],
  ['too large', 'application/json', `"${'x'.repeat(2_000_000)}"`],
])('an unknown path is 404 and its body is not read: one that is %s', async (_what, type, payload) => {
  const app = createServer();
  const response = await app.inject({ method: 'POST', url: '/nothing', headers: { 'content-type': type }, payload });
  expect([response.statusCode, response.json().code]).toEqual([404, 'not_found']);
  expect(response.headers['x-request-id']).toBe(response.json().requestId);
});

test('a start ends where a route has a schema for Fastify, whose compilers are not loaded', async () => {
  const app = createServer();
  app.get('/', { schema: { querystring: { type: 'object' } } }, async () => 'done');
  await expect(app.ready()).rejects.toThrow('routes have no schemas');
});

test('a slash too many, of a host that ends with one, does not count', async () => {
  const app = createServer();
  app.post('/v1/things', async () => 'done');
  app.get('/things/:id', async (request) => request.params);
  for (const url of ['//v1/things', '/v1//things/', '///v1/things?a=//b']) {
    const response = await app.inject({ method: 'POST', url });
    expect([response.statusCode, response.body], url).toEqual([200, 'done']);
  }
  // An identifier keeps its slashes.
  expect((await app.inject('//things/a%2F%2Fb')).json()).toEqual({ id: 'a//b' });
});

describe('a server with a path that has POST and one that a plugin has declared', () => {
  const app = createServer();
  let address: URL;

  beforeAll(async () => {
    app.post('/things', async () => 'done');
    app.register(async (routes) => {
      routes.get('/things/:id', async () => 'a thing');
      routes.delete('/things/:id', async () => 'deleted');
    });
    refuseOtherMethods(app);
    address = new URL(await app.listen({ host: '127.0.0.1', port: 0 }));
  });
  afterAll(() => app.close());

  async function request(method: string, path: string): Promise<string> {
    const socket = connect(Number(address.port), address.hostname);
    socket.write(`${method} ${path} HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}`);
    return await text(socket);
  }

  const others = (...declared: string[]) => METHODS.filter((one) => one !== 'CONNECT' && !declared.includes(one));

  test.each(others('POST'))('%s of the path is 405 with Allow, and 404 of an unknown path', async (method) => {
    const refused = await request(method, '/things');
    expect(refused).toContain('HTTP/1.1 405 Method Not Allowed\r\n');
    expect(refused).toContain('allow: POST\r\n');
    const unknown = await request(method, '/nothing');
    expect(unknown).toContain('HTTP/1.1 404 Not Found\r\n');
    for (const [response, status] of [
      [refused, 405],
      [unknown, 404],
    ] as const) {
      if (method !== 'HEAD') expect(response).toContain(`"status":${status},`);
    }
  });

  test.each(others('GET', 'HEAD', 'DELETE'))('%s of the path of the plugin is 405 with Allow', async (method) => {
    const refused = await request(method, '/things/1');
    expect(refused).toContain('HTTP/1.1 405 Method Not Allowed\r\n');
    expect(refused).toContain('allow: GET, HEAD, DELETE\r\n');
  });
});

test.each([
  ['localhost', 200],
  ['LOCALHOST:4001', 200],
  ['localhost.:4001', 200],
  ['127.0.0.1:4001', 200],
  ['[::1]:4001', 200],
  ['10.0.0.7', 200],
  ['', 200],
  ['evil.example', 421],
  ['evil.example:4001', 421],
  ['localhost.evil.example', 421],
  ['127.0.0.1.evil.example', 421],
  ['1.evil.example:127', 421],
])('a server that is reached by the name localhost answers requests to "%s" with %i', async (host, status) => {
  const app = createHttpServer({ ...OPTIONS, registry: new Registry(), allowedHosts: ['localhost'] });
  const response = await app.inject({ url: '/livez', headers: { host } });
  expect(response.statusCode).toBe(status);
  if (status === 421) {
    expect(response.json()).toMatchObject({
      code: 'host_not_allowed',
      detail: expect.stringContaining('ALLOWED_HOSTS'),
    });
    const unknown = await app.inject({ url: '/nothing', headers: { host } });
    expect(unknown.statusCode).toBe(421);
  }
});

test('a server without names of its own is reached by any', async () => {
  const response = await createServer().inject({ url: '/livez', headers: { host: 'behind.a-proxy.example' } });
  expect([response.statusCode, response.headers['x-content-type-options']]).toEqual([200, 'nosniff']);
});

test('a request on an open connection is served while the server stops', async () => {
  const app = createServer();
  const started = Promise.withResolvers<void>();
  const released = Promise.withResolvers<void>();
  app.get('/slow', async () => {
    started.resolve();
    await released.promise;
    return 'slow';
  });
  const { hostname, port } = new URL(await app.listen({ host: '127.0.0.1', port: 0 }));
  const socket = connect(Number(port), hostname);
  await once(socket, 'connect');
  socket.write('GET /slow HTTP/1.1\r\nHost: a\r\n\r\n');
  await started.promise;
  const closed = app.close();
  // The next request is late only after the server has stopped to accept connections.
  await eventually(() => app.server.listening).toBe(false);
  socket.write('GET /livez HTTP/1.1\r\nHost: a\r\nX-Request-Id: late\r\n\r\n');
  released.resolve();
  const responses = await text(socket);
  await closed;
  const [first, second = ''] = responses.split('slowHTTP/1.1 ');
  expect(first).toContain('HTTP/1.1 200 OK');
  expect(second).toMatch(/^200 OK\r\n/);
  expect(second.toLowerCase()).toContain('connection: close\r\n');
  expect(second).toContain('x-request-id: late\r\n');
  expect(second).toContain('{"status":"ok"}');
});

test.each([
  ['no HTTP', 'nothing\r\n\r\n'],
  ['a header without a colon', 'GET /livez HTTP/1.1\r\nHost a\r\n\r\n'],
  ['headers that are too long', `GET /livez HTTP/1.1\r\nHost: a\r\nX: ${'x'.repeat(20_000)}\r\n\r\n`],
  ['two lengths', 'POST /livez HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n'],
])('%s gets a problem, and the connection is closed', async (_what, request) => {
  const app = createServer();
  const { hostname, port } = new URL(await app.listen({ host: '127.0.0.1', port: 0 }));
  const socket = connect(Number(port), hostname);
  socket.write(request);
  const [head = '', body = ''] = (await text(socket)).split('\r\n\r\n');
  expect(head).toMatch(/^HTTP\/1\.1 400 Bad Request\r\nContent-Type: application\/problem\+json/);
  expect(JSON.parse(body)).toMatchObject({ status: 400, code: 'invalid_request' });
  expect(head).toContain(`X-Request-Id: ${(JSON.parse(body) as { requestId: string }).requestId}`);
  await app.close();
});

test('a server that stops closes each connection after the response that was under way', async () => {
  const app = createServer();
  const body = new PassThrough();
  app.get('/slow', async (_, reply) => await reply.send(body));
  const component = listening(app, '127.0.0.1', 0);
  await component.start();
  const { port } = app.server.address() as AddressInfo;
  // The client keeps its end open.
  const socket = connect(port, '127.0.0.1');
  onTestFinished(() => void socket.destroy());
  socket.write('GET /slow HTTP/1.1\r\nHost: a\r\n\r\n');
  body.write('begun');
  await once(socket, 'readable');
  const stopped = component.stop();
  await eventually(() => app.server.listening).toBe(false);
  body.end('done');
  expect(await text(socket)).toMatch(/begun\r\n4\r\ndone\r\n0\r\n\r\n$/);
  await stopped;
});

describe('a body that is not wanted', () => {
  /** More than the buffers of a connection take. */
  const BODY_BYTES = 20_000_000;
  const PART = 'x'.repeat(1_000_000);

  const app = createServer();
  let port: number;

  beforeAll(async () => {
    app.register(async (routes) => {
      acceptJsonBodies(routes, JSON.parse);
      routes.post('/limited', async () => 'done');
      routes.post('/unauthorized', {
        onRequest: async () => {
          throw new Problem('unauthorized', 'No key.');
        },
        handler: async () => 'done',
      });
      routes.post('/half-read', {
        onRequest: async ({ raw }) => {
          for await (const _ of raw.iterator({ destroyOnReturn: false })) break;
          throw new Problem('body_too_large', 'Enough.');
        },
        handler: async () => 'done',
      });
      routes.get('/answered', async () => 'done');
    });
    refuseOtherMethods(app);
    await app.listen({ host: '127.0.0.1', port: 0 });
    port = (app.server.address() as AddressInfo).port;
  });
  afterAll(() => app.close());

  /** Sends the head of a request. */
  function begin(request: string, length: string): Socket {
    const socket = connect(port, '127.0.0.1');
    onTestFinished(() => void socket.destroy());
    socket.on('error', () => undefined);
    socket.write(`${request} HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n${length}\r\n\r\n`);
    return socket;
  }

  const write = (socket: Socket, part: string) => promisify<string, void>(socket.write.bind(socket))(part);
  const CHUNK = `${PART.length.toString(16)}\r\n${PART}\r\n`;
  const LENGTHS = [
    ['a length', `Content-Length: ${BODY_BYTES}`, PART, ''],
    ['chunks', 'Transfer-Encoding: chunked', CHUNK, '0\r\n\r\n'],
  ] as const;

  const REQUESTS = [
    ['POST /limited', 413],
    ['POST /unauthorized', 401],
    ['POST /half-read', 413],
    ['POST /nothing', 404],
    ['POST /answered', 405],
  ] as const;

  describe.each(LENGTHS)('of %s', (_, length, part, end) => {
    /** Sends a whole body before it reads anything. */
    async function send(request: string, header = ''): Promise<Socket> {
      const socket = begin(request, `${header}${length}`);
      for (let sent = 0; sent < BODY_BYTES; sent += PART.length) await write(socket, part);
      await write(socket, end);
      return socket;
    }

    test.each(REQUESTS)('%s: who reads only at its end gets %i, and may go on', async (request, status) => {
      const socket = await send(request);
      await write(socket, 'GET /livez HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n');
      const responses = await text(socket);
      expect(responses).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
      expect(responses).toContain('{"status":"ok"}');
    });

    test.each(REQUESTS)('%s: who wants to close gets %i, and then the end', async (request, status) => {
      expect(await text(await send(request, 'Connection: close\r\n'))).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
    });
  });

  test.each(['POST /limited', 'POST /unauthorized'])('%s: one that does not end is cut off', async (request) => {
    const socket = begin(request, 'Transfer-Encoding: chunked').resume();
    const closed = new Promise<void>((resolve) => socket.on('close', () => resolve()));
    let sent = 0;
    for (; !socket.destroyed; sent += PART.length) {
      await Promise.race([write(socket, CHUNK).catch(() => undefined), closed]);
    }
    // Node.js itself would close the connection only after a minute.
    expect(sent).toBeLessThan(2 * DROPPED_BYTES_MAX);
  });
});
