import { brotliDecompressSync, gunzipSync, zstdDecompressSync } from 'node:zlib';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { anEvent, type QueryService, startQuery } from './testing/query-service.ts';

const ORIGIN = 'https://dashboard.example';

let query: QueryService;
let open: QueryService;

beforeAll(async () => {
  query = await startQuery(inject('clickhouseUrl'));
  open = await startQuery(inject('clickhouseUrl'), { CORS_ORIGINS: `${ORIGIN}, https://other.example` });
  await query.store(
    'a',
    Array.from({ length: 50 }, (_, index) => anEvent({ timestampMs: Date.UTC(2026, 0, 1) + index })),
  );
});
afterAll(async () => {
  await query.stop();
  await open.stop();
});

async function preflight(service: QueryService, origin: string) {
  const headers = {
    origin,
    'access-control-request-method': 'GET',
    'access-control-request-headers': 'authorization',
  };
  return await service.app.inject({ method: 'OPTIONS', url: '/events', headers });
}

test('pages of configured origins may read, with a key', async () => {
  const asked = await preflight(open, ORIGIN);
  expect(asked.statusCode).toBe(204);
  expect(asked.headers).toMatchObject({
    'access-control-allow-origin': ORIGIN,
    'access-control-allow-methods': 'GET',
    'access-control-allow-headers': expect.stringMatching(/authorization.*last-event-id/),
  });
  const headers = { origin: ORIGIN, authorization: 'Bearer a' };
  const response = await open.app.inject({ url: '/events', headers });
  expect([response.statusCode, response.headers['access-control-allow-origin']]).toEqual([200, ORIGIN]);
  // A page must be able to read why it was refused.
  const refused = await open.app.inject({ url: '/events', headers: { origin: ORIGIN } });
  expect([refused.statusCode, refused.headers['access-control-allow-origin']]).toEqual([401, ORIGIN]);
});

test('pages of other origins may not, and by default none may', async () => {
  for (const [service, origin] of [
    [open, 'https://evil.example'],
    [query, ORIGIN],
  ] as const) {
    expect((await preflight(service, origin)).headers['access-control-allow-origin']).toBeUndefined();
    const headers = { origin, authorization: 'Bearer a' };
    const response = await service.app.inject({ url: '/events', headers });
    expect(response.headers['access-control-allow-origin']).toBeUndefined();
  }
});

test.each([
  ['gzip', 'gzip', gunzipSync],
  ['br', 'br', brotliDecompressSync],
  ['zstd', 'zstd', zstdDecompressSync],
  ['gzip, deflate, br, zstd', 'zstd', zstdDecompressSync],
])(
  'a client that accepts %s gets %s, and the same bytes after decompression',
  async (accepted, encoding, decompress) => {
    const headers = { authorization: 'Bearer a' };
    const plain = await query.app.inject({ url: '/events', headers });
    const response = await query.app.inject({ url: '/events', headers: { ...headers, 'accept-encoding': accepted } });
    expect(response.headers).toMatchObject({ 'content-encoding': encoding, vary: 'accept-encoding' });
    expect(decompress(response.rawPayload).toString()).toBe(plain.body);
    expect(response.rawPayload.length).toBeLessThan(plain.rawPayload.length / 4);
    expect(plain.headers['content-encoding']).toBeUndefined();
  },
);

test('a small response is not compressed', async () => {
  const headers = { authorization: 'Bearer a', 'accept-encoding': 'gzip' };
  const response = await query.app.inject({ url: '/events?limit=0', headers });
  expect(response.headers['content-encoding']).toBeUndefined();
  expect(response.json()).toMatchObject({ total: 50 });
});
