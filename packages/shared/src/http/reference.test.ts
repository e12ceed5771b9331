import { Registry } from 'prom-client';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createLogger } from '../log.ts';
import { createApiDocument } from './openapi.ts';
import { OPERATIONAL_PATHS, OPERATIONAL_TAG } from './operational-paths.ts';
import { refuseOtherMethods } from './other-methods.ts';
import { registerReference } from './reference.ts';
import { createHttpServer } from './server.ts';

const options = { logger: createLogger('test', 'silent'), readiness: () => [] };
const app = createHttpServer({ ...options, registry: new Registry() });
let origin: string;

beforeAll(async () => {
  const description = { title: 'Test', description: 'A test.', tags: [OPERATIONAL_TAG], paths: OPERATIONAL_PATHS };
  registerReference(app, createApiDocument(description));
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
