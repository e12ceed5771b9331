import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { type Ingest, startIngest } from '../../testing/ingest.ts';

let ingest: Ingest;

beforeAll(async () => {
  ingest = await startIngest(inject('kafkaBrokers'), { CORS_ORIGINS: 'https://app.example' });
});
afterAll(() => ingest.stop());

const origin = 'https://app.example';

test.each(['/flags/?v=2', '/flags/?v=4', '/flags', '/decide/?v=3', '/decide'])(
  '%s: there are no flags',
  async (url) => {
    for (const body of [{ token: 'all', distinct_id: 'a' }, { api_key: 'all' }]) {
      const response = await ingest.app.inject({
        method: 'POST',
        url,
        payload: JSON.stringify(body),
        headers: { origin },
      });
      expect([response.statusCode, response.json()]).toEqual([200, { flags: {}, errorsWhileComputingFlags: false }]);
      expect(response.headers['access-control-allow-origin']).toBe(origin);
    }
  },
);

test('the configuration of posthog-js says that events are compressed and everything else is off', async () => {
  const response = await ingest.app.inject({ url: '/array/all/config', headers: { origin } });
  expect(response.statusCode).toBe(200);
  expect(response.json()).toMatchObject({
    supportedCompression: ['gzip-js'],
    ...{ hasFeatureFlags: false, sessionRecording: false, surveys: false },
  });
  expect(response.headers['access-control-allow-origin']).toBe(origin);
});

test.each(['/array/nobody/config', '/array/nobody/config.js'])('%s: a wrong key gets 401', async (url) => {
  expect((await ingest.app.inject({ url })).json()).toMatchObject({ status: 401, code: 'invalid_api_key' });
});

test.each(['/array/all/config.js', '/static/surveys.js?v=1', '/static/1.449.2/recorder.js'])(
  '%s is JavaScript that does nothing',
  async (url) => {
    const response = await ingest.app.inject({ url });
    expect([response.statusCode, response.body]).toEqual([200, '']);
    expect(response.headers['content-type']).toBe('text/javascript; charset=utf-8');
  },
);

test('/static/array.js, which the HTML snippet loads, says in the console of the page that it is not the client', async () => {
  const response = await ingest.app.inject({ url: '/static/array.js' });
  expect(response.body).toMatch(/^console\.error\('.+'\);\n$/);
});

test.each(['/static/a.css', '/static/1/a.map', '/static/..%2f..%2fetc%2fpasswd', '/static/'])(
  '%s is not there',
  async (url) => {
    expect((await ingest.app.inject({ url })).json()).toMatchObject({ status: 404, code: 'not_found' });
  },
);

describe('a recording of a session', () => {
  async function ignored(): Promise<number> {
    const { body } = await ingest.app.inject('/metrics');
    return Number(/^sluice_ingest_ignored_recordings_total (\d+)$/m.exec(body)?.[1]);
  }

  test.each(['/s', '/s/?compression=gzip-js'])('sent to %s gets 200 and is counted as ignored', async (url) => {
    const before = await ignored();
    for (const payload of ['', '{}', Buffer.alloc(5_000_000, 1)]) {
      const response = await ingest.app.inject({ method: 'POST', url, payload, headers: { origin } });
      expect([response.statusCode, response.json()]).toEqual([200, { status: 1 }]);
      expect(response.headers['access-control-allow-origin']).toBe(origin);
    }
    expect(await ignored()).toBe(before + 3);
  });
});

test('browsers may send what posthog-js sends, and read what it gets', async () => {
  const preflight = await ingest.app.inject({
    method: 'OPTIONS',
    url: '/e/',
    headers: { origin, 'access-control-request-method': 'POST', 'access-control-request-headers': 'content-type' },
  });
  expect(preflight.headers).toMatchObject({
    'access-control-allow-origin': origin,
    'access-control-allow-headers': 'content-type',
    // sendBeacon sends with credentials.
    'access-control-allow-credentials': 'true',
  });
  const refused = await ingest.app.inject({ method: 'POST', url: '/e/', payload: '{', headers: { origin } });
  expect([refused.statusCode, refused.headers['access-control-allow-origin']]).toEqual([400, origin]);
});
