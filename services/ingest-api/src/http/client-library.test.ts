import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { expect, test } from 'vitest';
import { CLIENTS, clientOf } from './client-library.ts';

const RECORDED = join(import.meta.dirname, '..', '..', '..', '..', 'tests', 'kit', 'clients', 'recorded');

const of = (body: unknown, userAgent?: string) => clientOf(Buffer.from(JSON.stringify(body)), userAgent);

test.each([
  ['analytics-php', { batch: [{ type: 'track', context: { library: { name: 'analytics-php', version: '3.8.1' } } }] }],
  ['analytics-ios', { context: { library: { version: '4.1.8', name: 'analytics-ios' } } }],
  ['analytics-csharp', { batch: [{ context: { library: { name: 'Analytics-CSharp' } } }] }],
  ['analytics-node', { context: { library: { name: '@segment/analytics-node' } } }],
  ['rudder-js', { context: { library: { name: 'RudderLabs JavaScript SDK', version: '3' } } }],
  ['rudder-android', { context: { library: { name: 'com.rudderstack.android.sdk.core' } } }],
  ['posthog-js', { properties: { $lib: 'web' } }],
  ['posthog-rs', { properties: { token: 'x', $lib: 'posthog-rs' } }],
  ['posthog-ruby', { library: 'posthog-ruby', library_version: '3.0.0' }],
])('a request of %s is known by what its calls say', (client, body) => {
  expect(of(body, 'Mozilla/5.0')).toBe(client);
});

test.each([
  ['analytics-ruby', 'analytics-ruby/2.5.0'],
  ['analytics-node', 'analytics-node-next/latest'],
  ['posthog-ruby', 'posthog-ruby3.1.1'],
  ['posthog-go', 'posthog-go (version: 1.6.12)'],
  ['other', 'Mozilla/5.0'],
  ['other', 'web-crawler/1.0'],
  ['other', undefined],
])('or else as %s, by the User-Agent %s', (client, userAgent) => {
  expect(of({ batch: [{ type: 'track', event: 'e' }] }, userAgent)).toBe(client);
});

test.each([
  ['a name that nobody knows', { library: { name: 'mine-1' } }],
  ['a name that every object has', { $lib: 'constructor' }],
  ['an endless name', { $lib: 'x'.repeat(1_000) }],
  ['a name in an object inside', { library: { about: { name: 'analytics-php' } } }],
])('%s does not become a name of a metric', (_what, body) => {
  expect(of(body)).toBe('other');
});

test('the first library that is known counts, as far as a body is searched', () => {
  const named = (name: string) => ({ context: { library: { name } } });
  expect(of([named('mine'), named('analytics-go'), named('analytics-php')])).toBe('analytics-go');
  expect(of([{ text: 'x'.repeat(70_000) }, named('analytics-go')])).toBe('other');
});

test('a body that is made to be slow to search is not', () => {
  for (const part of ['"library":{', '"library": ', '"library":{"name" ', '"$lib"\n']) {
    const body = Buffer.from(part.repeat(6_000));
    const before = performance.now();
    clientOf(body, undefined);
    // What backtracks takes minutes.
    expect(performance.now() - before, part).toBeLessThan(5_000);
  }
});

test('every client that was recorded is known', async () => {
  const found: Record<string, string> = {};
  for (const folder of await readdir(RECORDED)) {
    for (const file of await readdir(join(RECORDED, folder))) {
      const request = await readFile(join(RECORDED, folder, file));
      const end = request.indexOf('\r\n\r\n');
      const head = request.toString('latin1', 0, end);
      if (!/^POST \S*(?:\/batch|\/e\/|\/v0\/e|\/v1\/[a-z])/.test(head)) continue;
      const bytes = request.subarray(end + 4);
      const body = bytes[0] === 0x1f ? gunzipSync(bytes) : bytes;
      const userAgent = /^user-agent: (.*)$/im.exec(head)?.[1];
      found[folder] = clientOf(body, userAgent);
    }
  }
  const clients = Object.values(found);
  expect(clients.length).toBeGreaterThan(10);
  expect(clients.filter((client) => client === 'other' || !CLIENTS.includes(client))).toEqual([]);
  expect(found).toMatchObject({
    'rudder-sdk-node-3.0.13': 'analytics-node',
    'rudder-python-2.1.9': 'analytics-python',
  });
});
