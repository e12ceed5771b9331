import { Registry } from 'prom-client';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { createLogger } from '../base/log.ts';
import { createApiDocument } from './openapi.ts';
import { OPERATIONAL_PATHS, OPERATIONAL_TAG } from './operational-paths.ts';
import { refuseOtherMethods } from './other-methods.ts';
import { registerReference } from './reference.ts';
import { createHttpServer } from './server.ts';

const DESCRIPTION = { title: 'Test', description: 'A test.', tags: [OPERATIONAL_TAG], paths: OPERATIONAL_PATHS };
const options = { logger: createLogger('test', 'silent'), readiness: () => [] };
const app = createHttpServer({ ...options, registry: new Registry() });
let origin: string;

beforeAll(async () => {
  registerReference(app, async () => createApiDocument(DESCRIPTION));
  refuseOtherMethods(app);
  origin = await app.listen({ host: '127.0.0.1', port: 0 });
});
afterAll(() => app.close());

function address(path: string): URL {
  return new URL(path, origin);
}

test.each(['/docs', '/docs/'])('%s is a page that loads every file from this service', async (path) => {
  const response = await fetch(address(path));
  const html = await response.text();
  expect(response.headers.get('content-type')).toBe('text/html; charset=utf-8');
  expect(response.headers.get('content-security-policy')).toContain("default-src 'none'");
  const parts = [...html.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, part]) => new URL(part ?? '', address(path)));
  expect(parts.length).toBe(5);
  for (const part of parts) {
    expect(part.origin).toBe(origin);
    const file = await fetch(part);
    expect([part.pathname, file.status]).toEqual([part.pathname, 200]);
    expect(file.headers.get('content-type')).toMatch(
      /^(?:text\/(?:css|javascript)|application\/json); charset=utf-8$|^image\/png$/,
    );
    expect((await file.arrayBuffer()).byteLength).toBeGreaterThan(100);
  }
});

test('the document needs no key', async () => {
  const response = await fetch(address('/openapi.json'));
  expect(response.headers.get('content-type')).toBe('application/json; charset=utf-8');
  expect(await response.json()).toMatchObject({ openapi: '3.1.0', info: { title: 'Test' } });
});

test('the document is created when it is first asked for, and once', async () => {
  const other = createHttpServer({ ...options, registry: new Registry() });
  onTestFinished(async () => await other.close());
  let created = 0;
  registerReference(other, async () => {
    created += 1;
    return createApiDocument(DESCRIPTION);
  });
  await other.ready();
  await other.inject('/docs/start.js');
  expect(created).toBe(0);
  const responses = await Promise.all(
    ['/', '/docs', '/openapi.json', '/openapi.json'].map((path) => other.inject(path)),
  );
  expect(responses.map(({ statusCode }) => statusCode)).toEqual([200, 200, 200, 200]);
  expect(created).toBe(1);
});

test('a document that could not be created is tried again at the next request', async () => {
  const other = createHttpServer({ ...options, registry: new Registry() });
  onTestFinished(async () => await other.close());
  let attempts = 0;
  registerReference(other, async () => {
    attempts += 1;
    if (attempts === 1) throw new Error('too many open files');
    return createApiDocument(DESCRIPTION);
  });
  const statuses = [];
  for (const path of ['/openapi.json', '/openapi.json', '/']) statuses.push((await other.inject(path)).statusCode);
  expect(statuses).toEqual([500, 200, 200]);
  expect(attempts).toBe(2);
});

test.each(['/docs/nothing.js', '/docs/constructor', '/docs/..%2Findex.js', '/docs/swagger-ui.css.map'])(
  '%s is no file of the page',
  async (path) => {
    const response = await fetch(address(path));
    expect(response.status).toBe(404);
    expect(await response.json()).toMatchObject({ code: 'not_found' });
  },
);

test.each(['/openapi.json', '/docs', '/docs/swagger-ui.css'])('%s refuses other methods', async (path) => {
  const response = await fetch(address(path), { method: 'POST' });
  expect([response.status, response.headers.get('allow')]).toEqual([405, 'GET, HEAD']);
});
