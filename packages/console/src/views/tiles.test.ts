import { expect, test } from 'vitest';
import { reordered } from './tiles.tsx';

test.each([
  [0, 2, 'bca'],
  [2, 0, 'cab'],
  [1, 1, 'abc'],
  [3, 0, 'abc'],
])('from %i to %i', (from, to, expected) => {
  expect(reordered([...'abc'], from, to).join('')).toBe(expected);
});
