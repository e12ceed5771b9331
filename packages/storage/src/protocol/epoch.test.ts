import { expect, test } from 'vitest';
import { nextEpoch } from './epoch.ts';

const member = (generation: number, leaderId = 'l') => ({ generation, memberId: 'm', leaderId });
const recorded = (leaderIds: string[]) => ({ incarnation: 2, generation: 7, leaderIds });

test('the first recorded generation begins the first incarnation', () => {
  expect(nextEpoch(undefined, member(7), false)).toEqual({ incarnation: 1, generation: 7 });
});

test('members of one generation share an epoch, and each later generation has a higher one', () => {
  expect(nextEpoch(recorded(['l']), member(7), false)).toEqual({ incarnation: 2, generation: 7 });
  expect(nextEpoch(recorded(['l']), member(8, 'other'), false)).toEqual({ incarnation: 2, generation: 8 });
});

test('members share the epoch of their generation also when an older version has recorded it', () => {
  expect(nextEpoch(recorded(['']), member(7), false)).toEqual({ incarnation: 2, generation: 7 });
  expect(nextEpoch(recorded(['', 'l']), member(7), false)).toEqual({ incarnation: 2, generation: 7 });
});

test('a late member of an older generation is fenced, unless Kafka has restarted the count', () => {
  expect(nextEpoch(recorded(['l']), member(6), false)).toBeUndefined();
  expect(nextEpoch(recorded(['l']), member(1), true)).toEqual({ incarnation: 3, generation: 1 });
});

test('a generation of the same number with another leader is another one: late, or counted anew', () => {
  expect(nextEpoch(recorded(['l']), member(7, 'other'), false)).toBeUndefined();
  expect(nextEpoch(recorded(['', 'l']), member(7, 'other'), true)).toEqual({ incarnation: 3, generation: 7 });
});
