import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, beforeEach, expect, inject, test } from 'vitest';
import { type QueryService, startQuery } from '../../testing/query-service.ts';

/** Stands in for ingest-api: the pages of users in tests/clients delete through the real one. */
const received: IncomingMessage[] = [];
const ingest = createServer((request, response) => {
  received.push(request);
  const isBusy = request.url?.includes('busy') ?? false;
  response.writeHead(isBusy ? 503 : 202, { 'content-type': 'application/json', ...(isBusy && { 'retry-after': '7' }) });
  response.end('{"from":"ingest-api"}');
});

let query: QueryService;

beforeAll(async () => {
  ingest.listen(0, '127.0.0.1');
  await once(ingest, 'listening');
  const { port } = ingest.address() as AddressInfo;
  query = await startQuery(inject('clickhouseUrl'), { INGEST_URLS: `http://127.0.0.1:${port}/, http://127.0.0.1:9` });
});
afterAll(async () => {
  await query.stop();
  ingest.close();
});
beforeEach(() => {
  received.length = 0;
});

function remove(parameters: string, key: string, app = query.app) {
  return app.inject({ method: 'DELETE', url: `/users?${parameters}`, headers: { authorization: `Bearer ${key}` } });
}

test('a deletion is passed on as it is, and the response comes back as it is', async () => {
  const parameters = 'foreignId=a%2Bb%20%2F..%2F%23&before=2026-03-01T00:00:00Z&?x';
  const response = await remove(parameters, 'ingest-only');
  expect([response.statusCode, response.json()]).toEqual([202, { from: 'ingest-api' }]);
  expect(response.headers).not.toHaveProperty('retry-after');
  expect(received.map(({ method, url, headers }) => [method, url, headers.authorization])).toEqual([
    ['DELETE', `/v1/users?${parameters}`, 'Bearer ingest-only'],
  ]);
  expect(received[0]?.headers['x-request-id']).toBe(response.headers['x-request-id']);
  const busy = await remove('foreignId=busy', 'ingest-only');
  expect([busy.statusCode, busy.headers['retry-after']]).toEqual([503, '7']);
});

test('a key without the scope delete is refused here, and so is a request without a key', async () => {
  expect((await remove('foreignId=jane', 'a')).json()).toMatchObject({ status: 403, code: 'missing_scope' });
  const { statusCode } = await query.app.inject({ method: 'DELETE', url: '/users?foreignId=jane' });
  expect(statusCode).toBe(401);
  expect(received).toEqual([]);
});

test.each([
  [{}, 501, 'deletions_not_available'],
  [{ INGEST_URLS: 'http://127.0.0.1:9' }, 503, 'event_log_unavailable'],
])('with %j the response is %i %s', async (env: Record<string, string>, status, code) => {
  const other = await startQuery(inject('clickhouseUrl'), env);
  try {
    expect((await remove('foreignId=jane', 'ingest-only', other.app)).json()).toMatchObject({ status, code });
  } finally {
    await other.stop();
  }
});
