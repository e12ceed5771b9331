import { expect, test } from 'vitest';
import { VersionClock } from './version-clock.ts';

test('versions are the time in microseconds, and each is higher than the one before, also when the clock is set back', () => {
  let nowMs = 1_000;
  const versions = new VersionClock(() => nowMs);
  expect(versions.next()).toBe(1_000_000);
  expect([versions.next(), versions.next()]).toEqual([1_000_001, 1_000_002]);
  nowMs = 500;
  expect(versions.next()).toBe(1_000_003);
  nowMs = 2_000;
  expect(versions.next()).toBe(2_000_000);
  // Several at once are one after the other.
  expect([versions.next(3), versions.next()]).toEqual([2_000_001, 2_000_004]);
});
