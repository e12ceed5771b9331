import { expect, test } from 'vitest';
import { propertyLine } from './values.tsx';

test('properties in a line are names and values, a text as it is and anything else as JSON', () => {
  expect(propertyLine({ plan: 'pro', seats: 5, on: true, none: null, tags: ['a'], empty: '' })).toEqual([
    ['plan', 'pro'],
    ['seats', '5'],
    ['on', 'true'],
    ['none', 'null'],
    ['tags', '["a"]'],
    ['empty', ''],
  ]);
  expect(propertyLine({})).toEqual([]);
});

test('a line of properties ends where nobody reads on', () => {
  const line = propertyLine(Object.fromEntries(Array.from({ length: 1_000 }, (_, n) => [`p${n}`, 'x'.repeat(5_000)])));
  expect(line).toEqual([['p0', `${'x'.repeat(1_000)} …`]]);
});
