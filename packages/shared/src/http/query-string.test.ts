import { expect, test } from 'vitest';
import { Problem } from './problem.ts';
import { parseQueryString } from './query-string.ts';

test('names and values are decoded, and repeats are kept', () => {
  expect({ ...parseQueryString('a=1&b=x%20y+z&a=2&c&=d&e=%3D&&') }).toEqual({
    a: ['1', '2'],
    b: ['x y z'],
    c: [''],
    '': ['d'],
    e: ['='],
  });
});

test('__proto__ is a name like any other', () => {
  const parameters = parseQueryString('__proto__=1&constructor=2');
  expect(Object.keys(parameters)).toEqual(['__proto__', 'constructor']);
  expect(({} as Record<string, unknown>)['1']).toBeUndefined();
});

test.each(['a=%', 'a=%zz', '%ff=1', 'a=%C3%28'])('malformed encoding is refused: %s', (text) => {
  expect(() => parseQueryString(text)).toThrow(Problem);
});
