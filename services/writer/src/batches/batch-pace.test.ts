import { expect, test } from 'vitest';
import { BatchPace } from './batch-pace.ts';

const pace = () => new BatchPace({ intervalMs: 500, bytesMax: 1_000 });

test('the first batch does not wait, and neither does one that comes long after the last', () => {
  const idle = pace();
  expect(idle.restMs(0)).toBe(0);
  idle.stored(0, 10, 20);
  expect(idle.restMs(5_000)).toBe(0);
});

test('batches begin three times as far apart as the last one took, and at most the interval', () => {
  const busy = pace();
  busy.stored(1_000, 10, 1_020);
  expect(busy.restMs(1_020)).toBe(40);
  busy.stored(2_000, 10, 2_400);
  expect(busy.restMs(2_400)).toBe(100);
  busy.stored(3_000, 10, 3_600);
  expect(busy.restMs(3_600)).toBe(0);
});

test('behind a batch that is half full the next one follows at once', () => {
  const behind = pace();
  behind.stored(0, 500, 100);
  expect(behind.restMs(100)).toBe(0);
  behind.stored(0, 499, 100);
  expect(behind.restMs(100)).toBe(200);
});

test('a rest ends when its signal aborts', async () => {
  const resting = new BatchPace({ intervalMs: 3_600_000, bytesMax: 1_000 });
  resting.stored(performance.now() - 1_200_000, 10);
  const ending = new AbortController();
  const rest = resting.rest(ending.signal);
  ending.abort();
  await rest;
  expect(resting.restMs()).toBeGreaterThan(1_000_000);
});
