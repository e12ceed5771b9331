import { expect, test } from 'vitest';
import { TokenBucket } from './token-bucket.ts';

test('the tokens of two seconds can be taken at once, and then as many as the rate', () => {
  const bucket = new TokenBucket();
  const taken = (nowMs: number) => {
    let count = 0;
    while (bucket.take(1, 50, nowMs) === 0) count += 1;
    return count;
  };
  expect(taken(5_000)).toBe(100);
  expect(taken(5_000)).toBe(0);
  expect(taken(5_100)).toBe(5);
  expect(taken(6_100)).toBe(50);
  expect(taken(1_000_000)).toBe(100);
});

test('more tokens can be taken than the bucket holds, and the debt is waited for', () => {
  const bucket = new TokenBucket();
  expect(bucket.take(500, 50, 0)).toBe(0);
  // 400 tokens of debt, and the one to take: 8.02 seconds.
  expect(bucket.take(1, 50, 0)).toBe(9);
  expect(bucket.take(1, 50, 8_000)).toBe(1);
  expect(bucket.take(1, 50, 9_000)).toBe(0);
});

test('tokens that are given back can be taken again', () => {
  const bucket = new TokenBucket();
  expect([bucket.take(1, 1, 0), bucket.take(1, 1, 0), bucket.take(1, 1, 0)]).toEqual([0, 0, 1]);
  bucket.giveBack(1);
  expect([bucket.take(1, 1, 0), bucket.take(1, 1, 0)]).toEqual([0, 1]);
});

test('however many tokens are given back, those of two seconds are the most that can be taken at once', () => {
  const bucket = new TokenBucket();
  expect(bucket.take(500, 50, 0)).toBe(0);
  bucket.giveBack(500);
  expect(bucket.take(100, 50, 1_000)).toBe(0);
  expect(bucket.take(1, 50, 1_000)).toBe(1);
});

test('a changed rate is in force at once, also for the tokens that are left', () => {
  const bucket = new TokenBucket();
  bucket.take(1, 1_000, 0);
  expect([bucket.take(1, 1, 0), bucket.take(1, 1, 0), bucket.take(1, 1, 0)]).toEqual([0, 0, 1]);
  expect(bucket.take(1, 1_000, 1)).toBe(0);
});

test.each([1, 7, 50, 1_000])(
  'at %i a second, a client that waits as long as it should gets the rate and one burst',
  (perSecond) => {
    const bucket = new TokenBucket();
    let nowMs = 0;
    let taken = 0;
    for (let request = 1; request <= 500; request += 1) {
      const count = (request * 37) % 101;
      const seconds = bucket.take(count, perSecond, nowMs);
      nowMs += seconds * 1_000;
      if (seconds > 0) expect(bucket.take(count, perSecond, nowMs)).toBe(0);
      expect(taken).toBeLessThan(perSecond * (2 + nowMs / 1_000));
      taken += count;
    }
    expect(taken).toBeGreaterThan(perSecond * (nowMs / 1_000));
  },
);
