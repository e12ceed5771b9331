import { Registry } from 'prom-client';
import { afterAll, expect, test } from 'vitest';
import { createLogger } from '../base/log.ts';
import { createApiDocument } from './openapi.ts';
import { OPERATIONAL_PATHS, OPERATIONAL_TAG } from './operational-paths.ts';
import { registerReference } from './reference.ts';
import { createHttpServer } from './server.ts';

const logger = createLogger('test', 'silent');
const app = createHttpServer({ logger, registry: new Registry(), readiness: () => [] });
const description = { title: 'Test', description: 'A test.', tags: [OPERATIONAL_TAG], paths: OPERATIONAL_PATHS };
registerReference(app, async () => createApiDocument(description));
afterAll(() => app.close());

test('GET / says what the service is, and every path that it names exists', async () => {
  const response = await app.inject('/');
  expect(response.headers['content-type']).toBe('application/json; charset=utf-8');
  const { name, docs, openapi, health, metrics } = response.json();
  expect(name).toBe('Test');
  for (const path of [docs, openapi, health.live, health.ready, metrics]) {
    expect([path, (await app.inject(path)).statusCode]).toEqual([path, 200]);
  }
});
