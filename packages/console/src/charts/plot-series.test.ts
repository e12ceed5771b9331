import { expect, test } from 'vitest';
import { partialOf, stack, wholeOf } from './plot-series.ts';

const BUCKETS = ['a', 'b', 'c', 'd'];

test('a line leads to its partial buckets in another stroke', () => {
  const partial = new Set(['d']);
  expect(wholeOf(BUCKETS, [1, 2, 3, 4], partial)).toEqual([1, 2, 3, null]);
  expect(partialOf(BUCKETS, [1, 2, 3, 4], partial)).toEqual([null, null, 3, 4]);
  expect(partialOf(BUCKETS, [1, 2, 3, 4], new Set(['a']))).toEqual([1, 2, null, null]);
});

test('values are stacked in the order of the lines; one without a number leaves the others where they are', () => {
  const bars = stack([
    [1, 2],
    [10, null],
    [100, 100],
  ]);
  expect(bars.map(({ tops }) => tops)).toEqual([
    [1, 2],
    [11, null],
    [111, 102],
  ]);
  expect(bars.map(({ bases }) => bases)).toEqual([
    [0, 0],
    [1, 2],
    [11, 2],
  ]);
});
