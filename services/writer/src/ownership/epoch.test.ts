import { expect, test } from 'vitest';
import { nextEpoch } from './epoch.ts';

test('the first recorded generation begins the first incarnation', () => {
  expect(nextEpoch(undefined, 7, false)).toEqual({ outcome: 'owner', epoch: { incarnation: 1, generation: 7 } });
});

test('members of one generation share an epoch, and each later generation has a higher one', () => {
  const newest = { incarnation: 2, generation: 7 };
  expect(nextEpoch(newest, 7, false)).toEqual({ outcome: 'owner', epoch: newest });
  expect(nextEpoch(newest, 8, false)).toEqual({ outcome: 'owner', epoch: { incarnation: 2, generation: 8 } });
});

test('a late member of an older generation is fenced, unless Kafka has restarted the count', () => {
  const newest = { incarnation: 2, generation: 7 };
  expect(nextEpoch(newest, 6, false)).toEqual({ outcome: 'fenced' });
  expect(nextEpoch(newest, 1, true)).toEqual({ outcome: 'owner', epoch: { incarnation: 3, generation: 1 } });
});
