import { once } from 'node:events';
import { METHODS } from 'node:http';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import type { FastifyInstance } from 'fastify';
import { Registry } from 'prom-client';
import { expect, test } from 'vitest';
import { createLogger } from '../log.ts';
import { refuseOtherMethods } from './other-methods.ts';
import { createHttpServer } from './server.ts';

function createServer(): FastifyInstance {
  return createHttpServer({ logger: createLogger('test', 'silent'), registry: new Registry(), readiness: () => [] });
}

test('a path that is not there is 404 whatever its body, which is not read', async () => {
  const app = createServer();
  for (const [type, payload] of [
    ['text/xml', '<a/>'],
    ['application/json', '{'],
    ['application/json', `"${'x'.repeat(2_000_000)}"`],
  ] as const) {
    const response = await app.inject({ method: 'POST', url: '/nothing', headers: { 'content-type': type }, payload });
    expect([type, response.statusCode, response.json().code]).toEqual([type, 404, 'not_found']);
    expect(response.headers['x-request-id']).toBe(response.json().requestId);
  }
});

test('every method that a path does not have is 405 with Allow, and 404 where there is no path', async () => {
  const app = createServer();
  app.post('/things', async () => 'done');
  refuseOtherMethods(app);
  const { hostname, port } = new URL(await app.listen({ host: '127.0.0.1', port: 0 }));
  for (const method of METHODS.filter((one) => one !== 'POST' && one !== 'CONNECT')) {
    for (const [path, status, allow] of [
      ['/things', '405 Method Not Allowed', 'allow: POST\r\n'],
      ['/nothing', '404 Not Found', ''],
    ] as const) {
      const socket = connect(Number(port), hostname);
      socket.write(`${method} ${path} HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}`);
      const answer = await text(socket);
      expect(answer).toContain(`HTTP/1.1 ${status}\r\n`);
      expect(answer).toContain(allow);
      if (method !== 'HEAD') expect(answer).toContain(`"status":${status.slice(0, 3)},`);
    }
  }
  await app.close();
});

test('a request that comes on an open connection while the server stops is answered as always', async () => {
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
  // Only once the server refuses new connections is the next request one that came too late.
  await expect.poll(() => app.server.listening).toBe(false);
  socket.write('GET /livez HTTP/1.1\r\nHost: a\r\nX-Request-Id: late\r\n\r\n');
  released.resolve();
  const answers = await text(socket);
  await closed;
  const [first, second = ''] = answers.split('slowHTTP/1.1 ');
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
])('%s is answered with a problem, and the connection closed', async (_what, request) => {
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
