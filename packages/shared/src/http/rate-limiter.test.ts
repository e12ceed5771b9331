import { Registry } from 'prom-client';
import { expect, test } from 'vitest';
import { TokenBucket } from '../keys/token-bucket.ts';
import type { Problem } from './problem.ts';
import { type Limited, RateLimiter } from './rate-limiter.ts';

/** A bucket for which no time passes. */
class StillBucket extends TokenBucket {
  override take(count: number, perSecond: number): number {
    return super.take(count, perSecond, 0);
  }
}

const keyOf = (rateLimit?: number): Limited => ({ rateLimit, bucket: new StillBucket() });

function limiterOf(perSecondDefault: number | undefined) {
  const registry = new Registry();
  return { limiter: new RateLimiter({ perSecondDefault, registry }), registry };
}

/** Returns how many requests a limiter admits, at most 1,000. */
function admitted(limiter: RateLimiter, key: Limited): number {
  for (let count = 0; count < 1_000; count += 1) {
    if (problemOf(() => limiter.admit(key))) return count;
  }
  return 1_000;
}

function problemOf(call: () => void): Problem | undefined {
  try {
    call();
    return undefined;
  } catch (error) {
    return error as Problem;
  }
}

test('a key has its own rate, else that of all, else none', () => {
  expect(admitted(limiterOf(10).limiter, keyOf(100))).toBe(200);
  expect(admitted(limiterOf(100).limiter, keyOf(10))).toBe(20);
  expect(admitted(limiterOf(10).limiter, keyOf())).toBe(20);
  expect(admitted(limiterOf(undefined).limiter, keyOf(10))).toBe(20);
  const { limiter } = limiterOf(undefined);
  const free = keyOf();
  limiter.recount(free, 1_000);
  expect([admitted(limiter, free), limiter.secondsLeft(free)]).toEqual([1_000, 0]);
});

test('a key over its rate is told when it may come again, each refusal is counted, and no other key is refused', async () => {
  const { limiter, registry } = limiterOf(1);
  const [key, other] = [keyOf(), keyOf()];
  limiter.admit(key);
  limiter.recount(key, 10);
  expect(limiter.secondsLeft(key)).toBe(9);
  for (let count = 0; count < 2; count += 1) {
    expect(problemOf(() => limiter.admit(key))).toMatchObject({
      code: 'rate_limited',
      headers: { 'retry-after': '9' },
    });
  }
  expect(await registry.metrics()).toContain('sluice_http_rate_limited_requests_total 2');
  expect([limiter.secondsLeft(other), admitted(limiter, other)]).toEqual([0, 2]);
});

test('a request that is recounted counts as often as that, and as none when it is refused', () => {
  const { limiter } = limiterOf(1);
  const key = keyOf();
  for (let count = 0; count < 2; count += 1) limiter.admit(key);
  for (const count of [0, 1]) limiter.recount(key, count);
  expect(limiter.secondsLeft(key)).toBe(1);
  // The first one counts as 5, so the second one is refused, and given back.
  limiter.recount(key, 5);
  expect(limiter.secondsLeft(key)).toBe(5);
  expect(problemOf(() => limiter.recount(key, 3))).toMatchObject({
    code: 'rate_limited',
    headers: { 'retry-after': '4' },
  });
  expect(limiter.secondsLeft(key)).toBe(4);
});

test('a request that could not be served counts as none', () => {
  const { limiter } = limiterOf(5);
  const key = keyOf();
  limiter.admit(key);
  limiter.recount(key, 30);
  limiter.refund(key, 30);
  expect(admitted(limiter, key)).toBe(10);
});
