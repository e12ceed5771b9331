import { expect, test } from 'vitest';
import { formatChange } from './format.ts';

test.each([
  [150, 100, '+50%'],
  [50, 100, '-50%'],
  [5, 0, 'new'],
  [0, 0, '–'],
  [null, 100, '–'],
  [100, null, '–'],
])('the change of %s from %s is %s', (value, before, change) => {
  expect(formatChange(value, before)).toBe(change);
});
