import { expect, test } from 'vitest';
import { sharesOf } from './retention-report.tsx';

test('the share of an interval is of the cohorts that it is in the range for', () => {
  const cohorts = [
    { start: 'a', size: 10, returned: [10, 5, 2] },
    { start: 'b', size: 30, returned: [30, 3, 0] },
    { start: 'c', size: 0, returned: [0, 0, 0] },
    { start: 'd', size: 60, returned: [30, 0, 0] },
  ];
  expect(sharesOf(cohorts, 4)).toEqual([0.7, 0.2, 0.05, 0]);
  expect(sharesOf([{ start: 'a', size: 0, returned: [0] }], 1)).toEqual([null]);
});
