import { createLogger } from '@sluice/shared/base/log';
import type { OpenApiDocument } from '@sluice/shared/http/openapi';
import {
  createDocumentChecker,
  type DocumentChecker,
  errorsOfDocument,
  routesOf,
  withoutNames,
} from '@sluice/shared/testing/openapi';
import type { FastifyInstance } from 'fastify';
import { Registry } from 'prom-client';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { buildApp } from './app.ts';
import { configSchema } from './config.ts';

const ADMIN_KEY = 'admin of tests';

let app: FastifyInstance;
let document: OpenApiDocument;
let checker: DocumentChecker;
let routes: ReadonlySet<string>;

beforeAll(async () => {
  routes = await routesOf(async () => {
    // No service listens there.
    const urls = { INGEST_URL: 'http://127.0.0.1:1', QUERY_URL: 'http://127.0.0.1:1' };
    const env = { ...urls, TRENCH_ADMIN_KEY: ADMIN_KEY, API_KEYS_FILE: '/nowhere/keys.json', BODY_BYTES_MAX: '33333' };
    const logger = createLogger('trench-api', 'silent');
    app = buildApp(configSchema.parse(env), { logger, registry: new Registry(), now: Date.now });
    await app.ready();
    return app;
  });
  document = (await app.inject('/openapi.json')).json();
  checker = createDocumentChecker(document);
});
afterAll(() => app.close());

test('the document is OpenAPI 3.1, and its examples fit its schemas', async () => {
  expect(await errorsOfDocument(document)).toBeUndefined();
  const { count, errors } = checker.examples();
  expect(errors).toEqual([]);
  expect(count).toBeGreaterThan(20);
});

test('it describes every route, and no other', () => {
  const documented = [...checker.operations.keys()].map(withoutNames);
  const head = documented.filter((route) => route.startsWith('GET')).map((route) => route.replace('GET', 'HEAD'));
  expect([...routes].sort()).toEqual([...documented, ...head].sort());
});

test('it names the limits that are in force', () => {
  expect(document.info.description).toContain('33,333');
});

const key = { authorization: 'Bearer some' };
const admin = { authorization: `Bearer ${ADMIN_KEY.replaceAll(' ', '')}` };
const json = { 'content-type': 'application/json' };

test.each([
  [200, 'GET /', {}],
  [200, 'GET /livez', {}],
  [503, 'GET /readyz', {}],
  [200, 'GET /metrics', {}],
  [401, 'GET /events', {}],
  [401, 'POST /events', { headers: json, payload: '{"events":[]}' }],
  [401, 'POST /queries', { headers: json, payload: '{"queries":["SELECT 1"]}' }],
  [401, 'POST /workspaces', { headers: { ...json, ...key }, payload: '{"name":"a"}' }],
  [401, 'POST /workspaces', { headers: { ...json, ...admin }, payload: '{"name":"a"}' }],
  [400, 'POST /events', { headers: { ...json, ...key }, payload: '{"events":7}' }],
  [400, 'POST /events', { headers: { ...json, ...key }, payload: '{"events":' }],
  [413, 'POST /events', { headers: { ...json, ...key }, payload: `{"events":["${'x'.repeat(40_000)}"]}` }],
  [415, 'POST /events', { headers: { 'content-type': 'text/plain', ...key }, payload: 'a' }],
  [503, 'POST /events', { headers: { ...json, ...key }, payload: '{"events":[{"event":"e"}]}' }],
  [400, 'GET /events', { headers: key, query: '?properties=7' }],
  [503, 'GET /events', { headers: key }],
  [400, 'POST /queries', { headers: { ...json, ...key }, payload: '{"queries":[]}' }],
  [503, 'POST /queries', { headers: { ...json, ...key }, payload: '{"queries":["SELECT 1"]}' }],
] as const)('%i of %s is the documented response', async (status, operation, given) => {
  const [method, path] = operation.split(' ') as ['GET' | 'POST', string];
  const { query = '', ...rest } = { query: '', ...given };
  const response = await app.inject({ method, url: `${path}${query}`, ...rest });
  expect(response.statusCode).toBe(status);
  expect(checker.errorsOfResponse(operation, response)).toBeUndefined();
  if (status >= 400 && path !== '/readyz') {
    const body = response.json();
    expect(body).toMatchObject({ statusCode: status, error: body.title, message: body.detail, status });
  }
});
