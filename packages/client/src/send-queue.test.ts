import { expect, onTestFinished, test, vi } from 'vitest';
import { retryDelayMs } from './send-queue.ts';

const NOW = Date.UTC(2026, 2, 1);

function withRandom(value: number): void {
  const random = vi.spyOn(Math, 'random').mockReturnValue(value);
  onTestFinished(() => random.mockRestore());
}

test('the longest delay doubles up to 30 seconds, and any shorter one is as likely', () => {
  withRandom(1);
  const delays = [1, 2, 3, 4, 5, 6, 7, 100, 5_000].map((failures) => retryDelayMs(failures, null, NOW));
  expect(delays).toEqual([1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000, 30_000, 30_000]);
  withRandom(0.25);
  expect(retryDelayMs(3, null, NOW)).toBe(1_000);
});

test.each([
  ['7', 7_000],
  ['0', 0],
  ['0.5', 500],
  [new Date(NOW + 9_000).toUTCString(), 9_000],
  [new Date(NOW - 9_000).toUTCString(), 0],
  ['86400', 300_000],
  ['Infinity', 300_000],
  [new Date(NOW + 86_400_000).toUTCString(), 300_000],
  ['soon', 0],
  ['-5', 0],
  ['', 0],
  [null, 0],
])('Retry-After %s means %i ms, besides the jitter', (retryAfter, ms) => {
  withRandom(0);
  expect(retryDelayMs(1, retryAfter, NOW)).toBe(ms);
  withRandom(0.5);
  expect(retryDelayMs(1, retryAfter, NOW)).toBe(ms + 500);
});
