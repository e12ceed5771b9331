import { expect, test } from 'vitest';
import { columnsOf } from './funnel-columns.tsx';

const stepsOf = (...counts: (number | null)[]) =>
  counts.map((count, index) => ({ event: `step ${index}`, count, medianSecondsFromPrevious: null }));

test('a column is as high as its share of the first step, and what was lost since the step before stands on it', () => {
  const response = { steps: stepsOf(200, 50, 10), groupBy: [] };
  expect(columnsOf(response)).toEqual([
    { event: 'step 0', bars: [{ label: 'All', count: 200, share: 1, lost: 0 }] },
    { event: 'step 1', bars: [{ label: 'All', count: 50, share: 0.25, lost: 0.75 }] },
    { event: 'step 2', bars: [{ label: 'All', count: 10, share: 0.05, lost: 0.2 }] },
  ]);
});

test('groups stand side by side, each with the shares of its own; nothing is divided by nobody', () => {
  const groups = [
    { group: ['pro'], steps: stepsOf(10, 5) },
    { group: [null], steps: stepsOf(0, 0) },
    { group: ['new'], steps: stepsOf(null, null) },
  ];
  expect(columnsOf({ steps: stepsOf(10, 5), groups, groupBy: ['properties.plan'] })).toEqual([
    {
      event: 'step 0',
      bars: [
        { label: 'pro', count: 10, share: 1, lost: 0 },
        { label: '(none)', count: 0, share: 0, lost: 0 },
        { label: 'new', count: null, share: 0, lost: 0 },
      ],
    },
    {
      event: 'step 1',
      bars: [
        { label: 'pro', count: 5, share: 0.5, lost: 0.5 },
        { label: '(none)', count: 0, share: 0, lost: 0 },
        { label: 'new', count: null, share: 0, lost: 0 },
      ],
    },
  ]);
});
