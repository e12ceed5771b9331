import { expect, test } from 'vitest';
import { createOffsetGuard, OffsetGap, resumeOffset } from './offset-guard.ts';

const bounds = { low: 10n, high: 20n };

test('a group goes on where it had committed, and begins with the oldest message', () => {
  expect(resumeOffset('t/0', -1n, bounds)).toBe(10n);
  for (const committed of [10n, 15n, 20n]) expect(resumeOffset('t/0', committed, bounds)).toBe(committed);
});

test('an offset outside the log is never reset silently', () => {
  expect(() => resumeOffset('t/0', 9n, bounds)).toThrow(/1 messages are gone before they were stored/);
  expect(() => resumeOffset('t/0', 21n, bounds)).toThrow(/cut off/);
});

test('a gap between batches is noticed, a repeat is not', () => {
  const guard = createOffsetGuard('g');
  guard.follow('t', 0, '5', '9');
  guard.follow('t', 0, '10', '12');
  guard.follow('t', 0, '8', '12');
  guard.follow('t', 1, '100', '100');
  expect(() => guard.follow('t', 0, '14', '15')).toThrow(OffsetGap);
});
