import { expect, test } from 'vitest';
import type { Problem } from './problem.ts';
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

test.each([
  ['a=%', ['a']],
  ['a=%zz', ['a']],
  ['%ff=1', ['%ff']],
  ['a=%C3%28', ['a']],
  ['a=%&b=1&%61%20=%&c', ['a', 'a ']],
  [`${'x'.repeat(200)}=%`, ['x'.repeat(100)]],
])('malformed encoding is refused, by the names of the parameters: %s', (text, paths) => {
  let errors: Problem['errors'];
  try {
    parseQueryString(text);
  } catch (error) {
    errors = (error as Problem).errors;
  }
  expect(errors).toEqual(paths.map((path) => ({ path, code: 'malformed', message: 'is not valid percent-encoding' })));
});
