import { until } from '@sluice/shared/testing/until';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { type Ingest, startIngest } from '../../testing/ingest.ts';

let ingest: Ingest;

beforeAll(async () => {
  ingest = await startIngest(inject('kafkaBrokers'));
  for (const key of ['waits', 'waits too long']) await ingest.setKey(key, { rateLimit: 5 });
  const isKnown = async (key: string) =>
    (await ingest.app.inject(`/array/${encodeURIComponent(key)}/config`)).statusCode === 200;
  for (const key of ['waits', 'waits too long']) await until(`the key "${key}" to be known`, () => isKnown(key));
});
afterAll(() => ingest.stop());

async function send(key: string, events: number) {
  const batch = Array.from({ length: events }, () => ({ event: 'e', distinct_id: 'ada' }));
  return await ingest.app.inject({ method: 'POST', url: '/e/', payload: JSON.stringify({ api_key: key, batch }) });
}

test('over the rate of its key a request waits rather than being refused: posthog-js drops what gets 429', async () => {
  // The bucket holds ten, so ten are missing: two seconds.
  expect((await send('waits', 20)).statusCode).toBe(200);
  expect((await send('waits', 1)).statusCode).toBe(200);
});

test('a request that would wait too long gets 429 with Retry-After', async () => {
  expect((await send('waits too long', 500)).statusCode).toBe(200);
  const refused = await send('waits too long', 1);
  expect(refused.json()).toMatchObject({ status: 429, code: 'rate_limited' });
  expect(refused.headers['retry-after']).toMatch(/^[1-9]\d*$/);
});

test('what posthog-js asks for before it sends does not count', async () => {
  const key = encodeURIComponent('waits too long');
  expect((await ingest.app.inject(`/array/${key}/config`)).statusCode).toBe(200);
});

test.each(['/flags/?v=2', '/decide/?v=3'])('requests to %s count', async (url) => {
  const key = `asks ${url}`;
  await ingest.setKey(key, { rateLimit: 1 });
  const ask = async () => {
    return (await ingest.app.inject({ method: 'POST', url, payload: JSON.stringify({ token: key }) })).statusCode;
  };
  await until('the key to be known', async () => (await ask()) === 200);
  // So many at a time that the bucket is empty, however slowly they come.
  await until('a request to be refused', async () => {
    return (await Promise.all(Array.from({ length: 20 }, ask))).includes(429);
  });
});
