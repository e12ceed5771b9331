import { expect, test } from 'vitest';
import { differing, isContinued } from './use-filters.ts';

test('parameters differ by what they have, in whatever order', () => {
  const differ = (one: string, other: string) => differing(new URLSearchParams(one), new URLSearchParams(other));
  expect(differ('a=1&b=2', 'b=2&a=1')).toEqual([]);
  expect(differ('a=1&b=2&c=3', 'c=4&b=2&d=5')).toEqual(['a', 'c', 'd']);
  expect(differ('a=1', 'a=1&a=2')).toEqual(['a']);
});

test('a word that is typed or deleted goes on; another one does not', () => {
  expect([isContinued('sign', 'signed_up'), isContinued('signed_up', 'sig')]).toEqual([true, true]);
  expect([isContinued('signed_up', 'paid'), isContinued('', 'paid'), isContinued('paid', null)]).toEqual([
    false,
    false,
    false,
  ]);
});
