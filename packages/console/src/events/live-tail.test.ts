import { expect, test } from 'vitest';
import { RecentlySeen } from './live-tail.ts';

test('a key is new once, and again when many others have come since', () => {
  const seen = new RecentlySeen(3);
  const found = ['a', 'b', 'a', 'c', 'b', 'd', 'a', 'd'].map((key) => seen.add(key));
  expect(found).toEqual([true, true, false, true, false, true, true, false]);
});
