import { expect, test } from 'vitest';
import { chartOf } from './sql-chart.ts';

const result = (columns: readonly string[], ...rows: readonly (readonly unknown[])[]) => ({
  columns,
  rows: rows.map((row) => Object.fromEntries(columns.map((column, index) => [column, row[index]]))),
  isWhole: true,
});

test('numbers by day are lines, in the order of time', () => {
  const rows = [
    ['2026-03-02', 3, null],
    ['2026-03-01', 1, 0.5],
  ] as const;
  expect(chartOf(result(['day', 'users', 'share'], ...rows))).toMatchObject({
    ...{ kind: 'time', interval: 'day', buckets: ['2026-03-01T00:00:00.000Z', '2026-03-02T00:00:00.000Z'] },
    lines: [
      { label: 'users', values: [1, 3] },
      { label: 'share', values: [0.5, null] },
    ],
  });
});

test('a text beside the time has a line of each of its values, with gaps', () => {
  const rows = [
    ['2026-03-01 10:00:00', 'a', 1],
    ['2026-03-01 11:00:00', 'b', 2],
  ] as const;
  expect(chartOf(result(['hour', 'event', 'n'], ...rows))).toMatchObject({
    interval: 'hour',
    lines: [
      { label: 'a', values: [1, null] },
      { label: 'b', values: [null, 2] },
    ],
  });
  // Two rows of the same time would hide each other.
  expect(chartOf(result(['hour', 'event', 'n'], ...rows, rows[0]))).toBeUndefined();
});

test('a number for each name is bars; what has none, one row or something below zero is no chart', () => {
  expect(chartOf(result(['event', 'n'], ['a', 2], [null, 1]))).toMatchObject({
    kind: 'bars',
    bars: [
      { label: 'a', value: 2 },
      { label: 'null', value: 1 },
    ],
  });
  expect(chartOf(result(['event', 'n'], ['a', 2]))).toBeUndefined();
  expect(chartOf(result(['event', 'n'], ['a', 2], ['b', -1]))).toBeUndefined();
  expect(chartOf(result(['event', 'text'], ['a', 'x'], ['b', 'y']))).toBeUndefined();
  expect(chartOf(result(['n'], [1], [2]))).toBeUndefined();
});
