import { type AddressInfo, connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, inject, onTestFinished, test } from 'vitest';
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
      expect(response.statusCode).toBe(200);
      // Newer clients read `flags`, older ones for mobile devices `featureFlags`.
      expect(response.json()).toMatchObject({ flags: {}, featureFlags: {}, errorsWhileComputingFlags: false });
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

  test.each(['/s/', '/i/v1/logs', '/v1/m'])(
    'of more than 20 MB to %s is refused, and its client can read that when it has sent everything',
    async (path) => {
      if (!ingest.app.server.listening) await ingest.app.listen({ host: '127.0.0.1', port: 0 });
      const { port } = ingest.app.server.address() as AddressInfo;
      const part = 'x'.repeat(1_000_000);
      for (const length of ['Content-Length: 25000000', 'Transfer-Encoding: chunked']) {
        const isChunked = length.startsWith('Transfer');
        const socket = connect(port, '127.0.0.1').on('error', () => undefined);
        onTestFinished(() => void socket.destroy());
        const write = promisify<string, void>(socket.write.bind(socket));
        await write(`POST ${path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n${length}\r\n\r\n`);
        for (let sent = 0; sent < 25; sent += 1) await write(isChunked ? `f4240\r\n${part}\r\n` : part);
        if (isChunked) await write('0\r\n\r\n');
        expect(await text(socket), length).toMatch(/^HTTP\/1.1 413 .*body_too_large/s);
      }
    },
  );
});

test.each([
  ['POST', '/i/v1/logs?token=all'],
  ['POST', '/api/push_subscriptions/'],
  ['POST', '/api/something_new'],
  ['GET', '/api/surveys/?token=all'],
  ['GET', '/api/feature_flag/local_evaluation?token=all'],
  ['GET', '/flags/definitions?send_cohorts&token=all'],
  ['POST', '/rsaMetrics'],
] as const)('%s %s, which clients of others send, is counted and ignored', async (method, url) => {
  const before = await ignoredRequests();
  const response = await ingest.app.inject({
    method,
    url,
    headers: { origin },
    ...(method === 'POST' && { payload: '{' }),
  });
  expect(response.statusCode).toBe(200);
  expect(response.headers['access-control-allow-origin']).toBe(origin);
  expect(await ignoredRequests()).toBe(before + 1);
});

async function ignoredRequests(): Promise<number> {
  const { body } = await ingest.app.inject('/metrics');
  return Number(/^sluice_ingest_ignored_requests_total (\d+)$/m.exec(body)?.[1]);
}

test.each(['/i/v0/ai', '/i/v1/analytics/events', '/i/v2/e'])(
  'events to %s are not ignored without a word',
  async (url) => {
    expect((await ingest.app.inject({ method: 'POST', url, payload: '{}' })).json()).toMatchObject({ status: 404 });
  },
);

test.each(['/v1/projects/all/settings', '/projects/all/settings', '/v1/projects/nobody/settings'])(
  '%s tells clients of Segment to send here, and nothing about themselves elsewhere',
  async (url) => {
    const response = await ingest.app.inject({ url, headers: { origin, host: 'events.acme.example:8443' } });
    expect(response.json()).toEqual({
      integrations: { 'Segment.io': { apiKey: url.split('/').at(-2), apiHost: 'events.acme.example:8443/v1' } },
      plan: {},
      edgeFunction: {},
      metrics: { sampleRate: 0 },
    });
    expect(response.headers).toMatchObject({ 'access-control-allow-origin': origin, 'cache-control': 'no-store' });
  },
);

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
