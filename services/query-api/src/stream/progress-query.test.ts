import { expect, test } from 'vitest';
import { StoredThrough } from './progress-query.ts';
import { endOfBlock } from './stream-position.ts';

/** @param rows as `[block, throughMs]`, in the order in which they were recorded */
function storedThrough(...rows: readonly (readonly [number, number])[]): StoredThrough {
  const stored = new StoredThrough();
  for (const [block, throughMs] of rows) stored.add({ block, throughMs });
  return stored;
}

test('the newest time of those recorded with a block up to that of the place counts', () => {
  const stored = storedThrough([3, 100], [5, 200], [5, 210], [9, 300]);
  const found = [2, 3, 4, 5, 8, 9, 1_000].map((block) => stored.at(endOfBlock(block)));
  expect(found).toEqual([0, 100, 100, 210, 210, 300, 300]);
});

test('in the midst of a block, its later events are still to come', () => {
  const place = { block: 5, timestampMs: 1, uuid: '00000000-0000-4000-8000-000000000000' };
  expect(storedThrough([3, 100], [5, 200]).at(place)).toBe(100);
  expect(storedThrough([5, 200]).at(place)).toBe(0);
});

test('times that fall, as after a rewound group, and numbers that fall, as after erasures, make it no later than it is', () => {
  const rewound = storedThrough([3, 100], [5, 50], [6, 120]);
  expect([3, 5, 6].map((block) => rewound.at(endOfBlock(block)))).toEqual([100, 100, 120]);
  const fallen = storedThrough([3, 100], [9, 200], [5, 300]);
  expect([4, 5, 9].map((block) => fallen.at(endOfBlock(block)))).toEqual([100, 300, 300]);
});

test('rows of half an hour are kept; before them nothing is known', () => {
  const stored = storedThrough(...Array.from({ length: 2_000 }, (_, index) => [index, index] as const));
  expect([10, 999, 1_000, 1_999].map((block) => stored.at(endOfBlock(block)))).toEqual([0, 0, 1_000, 1_999]);
});
