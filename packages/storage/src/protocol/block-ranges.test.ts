import { expect, test } from 'vitest';
import { blocksOf, inAtLeast, rangesOf, union, without } from './block-ranges.ts';

const MONTH = 202_611;

test('ranges that touch or overlap become one, each month for itself', () => {
  const blocks = blocksOf([
    [MONTH, 4, 6],
    [MONTH, 0, 1],
    [MONTH, 2, 2],
    [2025, 3, 3],
    [MONTH, 5, 9],
  ]);
  expect(rangesOf(blocks)).toEqual([
    [MONTH, 0, 2],
    [MONTH, 4, 9],
    [2025, 3, 3],
  ]);
});

test('what two of three have', () => {
  const [one, two, three] = [
    blocksOf([[MONTH, 0, 5]]),
    blocksOf([
      [MONTH, 2, 3],
      [MONTH, 7, 9],
    ]),
    blocksOf([[MONTH, 3, 8]]),
  ];
  expect(rangesOf(inAtLeast(2, [one, two, three]))).toEqual([
    [MONTH, 2, 5],
    [MONTH, 7, 8],
  ]);
  expect(rangesOf(union(one, two, three))).toEqual([[MONTH, 0, 9]]);
  expect(rangesOf(inAtLeast(3, [one, two, three]))).toEqual([[MONTH, 3, 3]]);
});

test('what is left of one without another', () => {
  const one = blocksOf([
    [MONTH, 0, 9],
    [2025, 1, 1],
  ]);
  const other = blocksOf([
    [MONTH, 0, 1],
    [MONTH, 4, 4],
    [MONTH, 8, 12],
    [2024, 1, 1],
  ]);
  expect(rangesOf(without(one, other))).toEqual([
    [MONTH, 2, 3],
    [MONTH, 5, 7],
    [2025, 1, 1],
  ]);
  expect(rangesOf(without(one, one))).toEqual([]);
});
