import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { brotliDecompressSync, gunzipSync, gzipSync } from 'node:zlib';
import { createLogger } from '@sluice/shared/base/log';
import { createHttpServer } from '@sluice/shared/http/server';
import { Registry } from 'prom-client';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { type QueryService, startQuery } from '../../testing/query-service.ts';
import { registerConsole } from './console-route.ts';

let query: QueryService;

beforeAll(async () => {
  query = await startQuery(inject('clickhouseUrl'), { INGEST_URLS: 'http://ingest:4321/, http://ingest:9' });
});
afterAll(() => query.stop());

/** Returns the addresses of the files that the page loads. */
async function filesOfPage(): Promise<string[]> {
  const { body } = await query.app.inject('/console/');
  const files = [...body.matchAll(/(?:src|href)="([^".]+\.[^"]+)"/g)].map(([, file]) => `/console/${file}`);
  return [...new Set(files)];
}

test('GET / sends browsers to the console, and tells others what the service is', async () => {
  const accept = 'text/html,application/xhtml+xml,*/*;q=0.8';
  const browser = await query.app.inject({ url: '/', headers: { accept } });
  expect([browser.statusCode, browser.headers.location, browser.headers.vary]).toEqual([302, 'console/', 'accept']);
  const other = await query.app.inject({ url: '/', headers: { accept: '*/*' } });
  expect(other.json()).toMatchObject({ name: 'Sluice query API' });
});

test('the page is served at /console/ without a key, and may load and reach query-api only', async () => {
  const redirect = await query.app.inject('/console');
  expect([redirect.statusCode, redirect.headers.location]).toEqual([302, 'console/']);
  const { statusCode, headers } = await query.app.inject('/console/');
  expect(statusCode).toBe(200);
  expect(headers).toMatchObject({
    'content-type': 'text/html; charset=utf-8',
    'content-security-policy':
      "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
    'referrer-policy': 'no-referrer',
    'x-content-type-options': 'nosniff',
    'cache-control': 'no-cache',
  });
});

test('the page says the port of ingest-api, and its files are compressed on the way', async () => {
  const { body } = await query.app.inject('/console/');
  expect(body).toContain('<meta name="ingest-port" content="4321">');
  const [script = ''] = (await filesOfPage()).filter((file) => file.includes('/script-'));
  const plain = await query.app.inject(script);
  for (const [encoding, decompress] of [
    ['gzip', gunzipSync],
    ['br', brotliDecompressSync],
  ] as const) {
    const sent = await query.app.inject({ url: script, headers: { 'accept-encoding': encoding } });
    expect([sent.headers['content-encoding'], sent.headers['cache-control']]).toEqual([
      encoding,
      plain.headers['cache-control'],
    ]);
    expect(sent.rawPayload.length).toBeLessThan(plain.rawPayload.length / 2);
    expect(decompress(sent.rawPayload).equals(plain.rawPayload)).toBe(true);
  }
});

test('a browser that has the page gets 304 without a body', async () => {
  const { headers } = await query.app.inject('/console/');
  const again = await query.app.inject({ url: '/console/', headers: { 'if-none-match': String(headers.etag) } });
  expect([again.statusCode, again.body]).toEqual([304, '']);
  const other = await query.app.inject({ url: '/console/', headers: { 'if-none-match': 'W/"other"' } });
  expect(other.statusCode).toBe(200);
});

test('each file of the page may be kept for ever', async () => {
  const files = await filesOfPage();
  expect(files.map((file) => file.replace(/-[0-9a-f]{16}\./, '.'))).toEqual([
    '/console/icon.svg',
    '/console/style.css',
    '/console/colors.js',
    '/console/script.js',
  ]);
  for (const file of files) {
    const { statusCode, headers } = await query.app.inject(file);
    expect([file, statusCode, headers['cache-control'], headers['x-content-type-options']]).toEqual([
      file,
      200,
      'public, max-age=31536000, immutable',
      'nosniff',
    ]);
  }
});

test('the first load is at most 40 kB of JavaScript, gzipped, and the whole at most 120 kB', async () => {
  const sizeOf = async (file: string) => {
    const { statusCode, rawPayload } = await query.app.inject(file);
    expect([file, statusCode]).toEqual([file, 200]);
    return { size: gzipSync(rawPayload, { level: 6 }).length, text: rawPayload.toString() };
  };
  const [colors = '', script = ''] = (await filesOfPage()).filter((file) => file.endsWith('.js'));
  const first = await sizeOf(script);
  expect(first.size + (await sizeOf(colors)).size).toBeLessThanOrEqual(40_000);
  // What is loaded later is loaded when it is needed, and from here.
  expect(/(?:^|[;}])import\s*["'{*]/.test(first.text)).toBe(false);
  const names = [...first.text.matchAll(/\bimport\s*\(\s*[`"']\.\/([^`"']+)/g)].map(([, name]) => `/console/${name}`);
  expect(names.length).toBe([...first.text.matchAll(/\bimport\s*\(/g)].length);
  const later = await Promise.all([...new Set(names)].map(sizeOf));
  expect(later.reduce((sum, { size }) => sum + size, first.size)).toBeLessThanOrEqual(120_000);
});

test.each([
  '/console/index.html',
  '/console/nothing.js',
  '/console/..%2Fpackage.json',
  '/console/..%2Fsrc%2Fparts%2Fstyle.css',
  '/console/script-0.js',
  '/console/events/1',
])('%s is no file of the console', async (url) => {
  const response = await query.app.inject(url);
  expect(response.statusCode).toBe(404);
  expect(response.json()).toMatchObject({ code: 'not_found' });
});

test('without a build, the page says how to build it', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-console-'));
  const app = createHttpServer({
    logger: createLogger('test', 'silent'),
    registry: new Registry(),
    readiness: () => [],
  });
  registerConsole(app, { folder });
  try {
    const { message } = (await app.inject('/console/')).json();
    expect(message).toBe('The console is not built: run node packages/console/scripts/build.ts.');
  } finally {
    await app.close();
    await rm(folder, { recursive: true });
  }
});
