import { TokenBucket } from '@sluice/shared/keys/token-bucket';
import { eventually } from '@sluice/shared/testing/eventually';
import { afterAll, afterEach, beforeAll, beforeEach, expect, inject, onTestFinished, test, vi } from 'vitest';
import { type Ingest, post, startIngest } from './testing/ingest.ts';

let ingest: Ingest;
/** What the clock shows by which rates are measured, in milliseconds: a busy machine must not fill a bucket meanwhile. */
let nowMs = 1e9;

beforeAll(async () => {
  ingest = await startIngest(inject('kafkaBrokers'), { CORS_ORIGINS: 'https://app.example' });
});
afterAll(() => ingest.stop());
afterEach(() => {
  vi.restoreAllMocks();
});

const organization = (name: string, events = 1) => ({
  foreignUserGroupId: 'acme',
  events: Array.from({ length: events }, () => ({ event: name })),
});

async function submit(key: string, body: unknown = organization('e')) {
  const { statusCode, headers, body: text } = await post(ingest.app, body, { key });
  return { status: statusCode, retryAfter: Number(headers['retry-after']), headers, text };
}

async function metric(name: string): Promise<number> {
  const { body } = await ingest.app.inject('/metrics');
  return Number(new RegExp(`^${name} (\\d+)$`, 'm').exec(body)?.[1] ?? Number.NaN);
}

/** Puts a key into the file and waits until it is in force. */
async function setKey(id: string, rateLimit?: number): Promise<void> {
  await ingest.setKey(id, { ...(rateLimit !== undefined && { rateLimit }) });
  await ingest.setKey(`${id}-is-known-${rateLimit}`);
  await eventually(async () => (await submit(`${id}-is-known-${rateLimit}`, {})).status).toBe(400);
}

const requests = (count: number, key: string, body?: unknown) =>
  Promise.all(Array.from({ length: count }, () => submit(key, body)));
const statuses = (responses: readonly { readonly status: number }[]) => responses.map(({ status }) => status).sort();

beforeEach(() => {
  const { take } = TokenBucket.prototype;
  vi.spyOn(TokenBucket.prototype, 'take').mockImplementation(function (this: TokenBucket, count, perSecond) {
    return take.call(this, count, perSecond, nowMs);
  });
});

// It comes first: it reads everything that is stored.
test('a refused submission stores nothing, and only one of several at the same moment is accepted', async () => {
  await setKey('limited-refused', 10);
  const responses = await requests(4, 'limited-refused', { ...organization('kept', 30), properties: { plan: 'pro' } });
  expect(statuses(responses)).toEqual([202, 429, 429, 429]);
  expect((await submit('all', organization('last', 30))).status).toBe(202);
  const rows = (await ingest.read('events', 60)).flatMap((message) => message.rows);
  expect(rows.map(({ event }) => event).sort()).toEqual([...Array(30).fill('kept'), ...Array(30).fill('last')]);
  const changes = (await ingest.read('entities', 1)).flatMap((message) => message.rows);
  expect(changes.filter(({ property }) => property === 'plan')).toHaveLength(1);
});

test('a key over its rate gets 429, and 202 again after Retry-After; other keys are not affected', async () => {
  await setKey('limited-over', 50);
  const responses = await requests(150, 'limited-over');
  const refused = responses.filter(({ status }) => status === 429);
  expect(responses.filter(({ status }) => status === 202).length).toBe(100);
  expect(refused.length).toBe(50);
  for (const { headers, text } of refused) {
    expect(headers['retry-after']).toMatch(/^[1-9]\d*$/);
    expect(headers['content-type']).toContain('application/problem+json');
    expect(JSON.parse(text)).toMatchObject({ status: 429, code: 'rate_limited', requestId: headers['x-request-id'] });
  }
  expect((await submit('all')).status).toBe(202);
  nowMs += (refused.at(-1)?.retryAfter ?? 0) * 1_000;
  expect((await submit('limited-over')).status).toBe(202);
});

test('a submission counts as its events: it is accepted as a whole, however large, and the next ones wait', async () => {
  await setKey('limited-large', 5);
  const large = await submit('limited-large', organization('large', 200));
  expect([large.status, (JSON.parse(large.text) as { events: unknown[] }).events.length]).toEqual([202, 200]);
  const { status, retryAfter } = await submit('limited-large');
  expect(status).toBe(429);
  // 190 events of debt and the next one, at 5 a second.
  expect(retryAfter).toBe(39);
});

test('a request without events counts as one, and so does a deletion or an invalid one; its body is not read', async () => {
  await setKey('limited-no-events', 1);
  const limited = () => metric('sluice_http_rate_limited_requests_total');
  const before = await limited();
  expect((await submit('limited-no-events', { foreignUserGroupId: 'acme', properties: { plan: 'pro' } })).status).toBe(
    202,
  );
  expect((await submit('limited-no-events', '{')).status).toBe(400);
  expect((await submit('limited-no-events', '{')).status).toBe(429);
  const deletion = await ingest.app.inject({
    method: 'DELETE',
    url: '/v1/users?foreignId=jane',
    headers: { authorization: 'Bearer limited-no-events' },
  });
  expect(deletion.statusCode).toBe(429);
  expect(await limited()).toBe(before + 2);
});

test('a changed limit is in force within a second, and the tokens that were used stay used', async () => {
  await setKey('limited-changed', 1);
  expect((await submit('limited-changed', organization('large', 100))).status).toBe(202);
  expect((await submit('limited-changed')).status).toBe(429);
  await setKey('limited-changed', 2);
  const { status, retryAfter } = await submit('limited-changed');
  expect(status).toBe(429);
  // 98 events of debt and the next one.
  expect(retryAfter).toBe(50);
  await setKey('limited-changed', 1_000);
  nowMs += 100;
  expect((await submit('limited-changed')).status).toBe(202);
  await setKey('limited-changed');
  expect(statuses(await requests(30, 'limited-changed', organization('free', 100)))).toEqual(Array(30).fill(202));
});

test('a page in a browser can read Retry-After', async () => {
  await setKey('limited-page', 1);
  await submit('limited-page', organization('e', 5));
  const response = await post(ingest.app, {}, { key: 'limited-page', headers: { origin: 'https://app.example' } });
  expect(response.statusCode).toBe(429);
  expect(response.headers['access-control-allow-origin']).toBe('https://app.example');
  expect(response.headers['access-control-expose-headers']).toContain('retry-after');
});

test('RATE_LIMIT_DEFAULT applies to keys without a limit of their own', async () => {
  const shared = ingest;
  ingest = await startIngest(inject('kafkaBrokers'), { RATE_LIMIT_DEFAULT: '1' });
  onTestFinished(async () => {
    await ingest.stop();
    ingest = shared;
  });
  await setKey('limited-own', 1_000);
  const accepted = statuses(await requests(10, 'all')).filter((status) => status === 202);
  expect(accepted.length).toBe(2);
  expect(statuses(await requests(2, 'ingest-only'))).toEqual([202, 202]);
  expect(statuses(await requests(10, 'limited-own'))).toEqual(Array(10).fill(202));
});
