import { expect, test } from 'vitest';
import { lonely, partialOf, stack, wholeOf } from './plot-series.ts';

const BUCKETS = ['a', 'b', 'c', 'd'];

test('what a line shows of its partial buckets is apart from the others', () => {
  const partial = new Set(['d']);
  expect(wholeOf(BUCKETS, [1, 2, 3, 4], partial)).toEqual([1, 2, 3, null]);
  expect(partialOf(BUCKETS, [1, 2, 3, 4], partial)).toEqual([null, null, null, 4]);
});

test('a number between two gaps is lonely', () => {
  expect(lonely([1, null, 2, 3, null, 4])).toEqual([0, 5]);
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
