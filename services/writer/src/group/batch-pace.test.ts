import { expect, test } from 'vitest';
import { BatchPace } from './batch-pace.ts';

const FEW_BYTES = 600;

const pace = () => new BatchPace({ ageMs: 1_000, bytesMax: 1_000_000 });

test('the first batch does not wait, and neither does one that comes long after the last', () => {
  const idle = pace();
  expect(idle.restMs(0)).toBe(0);
  idle.stored(0, FEW_BYTES, 20);
  expect(idle.restMs(5_000)).toBe(0);
});

test('batches of a load begin so that their rows are stored at their age, however few they hold', () => {
  const steady = pace();
  steady.stored(1_000, FEW_BYTES, 1_020);
  expect(steady.restMs(1_020)).toBe(960);
  steady.stored(2_000, FEW_BYTES, 2_300);
  expect(steady.restMs(2_300)).toBe(400);
});

test('however long storing takes, batches begin half of the age apart', () => {
  const slow = pace();
  slow.stored(1_000, FEW_BYTES, 1_490);
  expect(slow.restMs(1_490)).toBe(20);
  slow.stored(1_000, FEW_BYTES, 1_900);
  expect(slow.restMs(1_900)).toBe(0);
  expect(slow.restMs(1_450), 'had it ended before').toBe(50);
});

test('behind a batch that is half full the next one follows at once', () => {
  const behind = pace();
  behind.stored(0, 500_000, 100);
  expect(behind.restMs(100)).toBe(0);
  behind.stored(0, 499_999, 100);
  expect(behind.restMs(100)).toBe(800);
});

test('a rest ends when its signal aborts', async () => {
  const resting = new BatchPace({ ageMs: 3_600_000, bytesMax: 1_000 });
  resting.stored(performance.now() - 1_200_000, 10);
  const ending = new AbortController();
  const rest = resting.rest(ending.signal);
  ending.abort();
  await rest;
  expect(resting.restMs()).toBeGreaterThan(1_000_000);
});
