import { expect, test } from 'vitest';
import { parseJson } from './json.ts';

function membersOf(text: string): [string, unknown][] {
  return Object.entries(parseJson(text) as object);
}

test('an escaped name is read right, whatever was parsed before', () => {
  for (const [known, raw, name] of [
    ['\\', '\\n', '\n'],
    ['\\', '\\"', '"'],
    ['\\', '\\u0000', '\0'],
    ['ab\\', 'ab\\u00e9', 'abé'],
    ['\\n', '\\nx', '\nx'],
  ] as const) {
    parseJson(JSON.stringify({ same: 0, [known]: 1 }));
    expect(membersOf(`{"same":0,"${raw}":{"same":0 , "${raw}" : "\\"${raw}\\":"}}`)).toEqual([
      ['same', 0],
      [name, { same: 0, [name]: `"${name}":` }],
    ]);
  }
});

test('order, duplicates and __proto__ are as JSON.parse has them', () => {
  expect(membersOf('{"b\\n":1,"a":2,"\\u0061":3,"b\\n":4}')).toEqual([
    ['b\n', 4],
    ['a', 3],
  ]);
  const parsed = parseJson('{"\\u005f_proto__":{"x":1},"__proto__":{"y\\n":1}}') as object;
  expect(Object.entries(parsed)).toEqual([['__proto__', { 'y\n': 1 }]]);
  expect(Object.getPrototypeOf(parsed)).toBe(Object.prototype);
  expect(parseJson('["\\n", "a\\":", {"c":"\\\\"}]')).toEqual(['\n', 'a":', { c: '\\' }]);
});

test.each(['{"a\\x":1}', '{"a\\n"', '{"\\', '"\\', '{"a\n\\n":1}', '{"\\u00zz":1}', '[\\]', '{"a\\n":1}}'])(
  'what is not JSON is refused: %j',
  (text) => {
    expect(() => parseJson(text)).toThrow(SyntaxError);
  },
);

test.each(['', '\\'])('a string of escaped quotes that does not end is refused at once (then %j)', (end) => {
  const text = `{"a":"${'\\"'.repeat(1_000_000)}${end}`;
  expect(() => parseJson(text)).toThrow(SyntaxError);
});
