import { Registry } from 'prom-client';
import { expect, test } from 'vitest';
import { TokenBucket } from '../keys/token-bucket.ts';
import { Problem } from './problem.ts';
import { RateLimiter } from './rate-limiter.ts';

const limiter = (perSecondDefault?: number) => {
  const registry = new Registry();
  return { registry, rates: new RateLimiter({ perSecondDefault, registry }) };
};

/** What a key has so far: nothing left, and a debt that is paid off in so many seconds. */
function inDebt(seconds: number, perSecond: number): TokenBucket {
  const bucket = new TokenBucket();
  bucket.take(perSecond * (seconds + 2), perSecond, performance.now());
  return bucket;
}

/** Returns the `Retry-After` with which a request is refused; undefined when it is not. */
function refusal(request: () => void): number | undefined {
  try {
    request();
    return undefined;
  } catch (error) {
    if (!(error instanceof Problem) || error.code !== 'rate_limited') throw error;
    return Number(error.headers['retry-after']);
  }
}

test('a key without a rate has that of the service, and one with a rate has its own, whichever is higher', () => {
  for (const [rateLimit, perSecond] of [
    [undefined, 10],
    [5, 5],
    [1_000, 1_000],
  ] as const) {
    const { rates } = limiter(10);
    const key = { rateLimit, bucket: inDebt(100, perSecond) };
    const seconds = refusal(() => rates.admit(key));
    expect(seconds).toBeGreaterThan(95);
    expect(seconds).toBeLessThanOrEqual(101);
    expect(rates.secondsLeft(key)).toBeLessThanOrEqual(seconds as number);
  }
});

test('a key without any rate is never refused', () => {
  const { rates } = limiter();
  const key = { rateLimit: undefined, bucket: new TokenBucket() };
  for (let index = 0; index < 10_000; index += 1) rates.admit(key);
  rates.recount(key, 1_000_000);
  expect([refusal(() => rates.admit(key)), rates.secondsLeft(key)]).toEqual([undefined, 0]);
});

test('a request counts as so many as it has, and those that are refused count as none', () => {
  const { rates } = limiter(1_000);
  const key = { rateLimit: undefined, bucket: new TokenBucket() };
  rates.admit(key);
  // A request may be larger than the bucket: the next ones wait for it.
  rates.recount(key, 100_000);
  const seconds = refusal(() => rates.admit(key));
  expect(seconds).toBeGreaterThan(90);
  for (let index = 0; index < 10_000; index += 1) refusal(() => rates.admit(key));
  expect(refusal(() => rates.admit(key))).toBeLessThanOrEqual(seconds as number);
});

test('what could not be served is given back', () => {
  const { rates } = limiter(1_000);
  const key = { rateLimit: undefined, bucket: new TokenBucket() };
  rates.admit(key);
  rates.recount(key, 100_000);
  expect(rates.secondsLeft(key)).toBeGreaterThan(90);
  rates.refund(key, 100_000);
  expect([rates.secondsLeft(key), refusal(() => rates.admit(key))]).toEqual([0, undefined]);
});

test('looking at the wait counts nothing, and each refusal is counted once', async () => {
  const { registry, rates } = limiter(1);
  const key = { rateLimit: undefined, bucket: new TokenBucket() };
  for (let index = 0; index < 1_000; index += 1) expect(rates.secondsLeft(key)).toBe(0);
  rates.admit(key);
  const refused = { rateLimit: 1, bucket: inDebt(1_000, 1) };
  for (let index = 0; index < 3; index += 1) refusal(() => rates.admit(refused));
  rates.secondsLeft(refused);
  expect(await registry.metrics()).toMatch(/^\w*rate_limited_requests_total 3$/m);
});
