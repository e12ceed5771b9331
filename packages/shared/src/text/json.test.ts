import { expect, test } from 'vitest';
import { parseExactJson, parseJson } from './json.ts';

function membersOf(text: string): [string, unknown][] {
  return Object.entries(parseJson(text) as object);
}

test.each([
  ['\\', '\\n', '\n'],
  ['\\', '\\"', '"'],
  ['\\', '\\u0000', '\0'],
  ['ab\\', 'ab\\u00e9', 'abé'],
  ['\\n', '\\nx', '\nx'],
])('after a text with the name %j, the name "%s" is %j', (known, raw, name) => {
  parseJson(JSON.stringify({ same: 0, [known]: 1 }));
  expect(membersOf(`{"same":0,"${raw}":{"same":0 , "${raw}" : "\\"${raw}\\":"}}`)).toEqual([
    ['same', 0],
    [name, { same: 0, [name]: `"${name}":` }],
  ]);
});

test('order, duplicates and __proto__ are as in JSON.parse', () => {
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
  'a text that is not JSON is refused: %j',
  (text) => {
    expect(() => parseJson(text)).toThrow(SyntaxError);
  },
);

test.each(['', '\\'])('a string of escaped quotes that does not end is refused at once (then %j)', (end) => {
  const text = `{"a":"${'\\"'.repeat(1_000_000)}${end}`;
  expect(() => parseJson(text)).toThrow(SyntaxError);
});

test('a megabyte of escaped names is parsed in linear time', () => {
  const text = (names: number) => `[${Array(names).fill('{"\\n":0}').join(',')}]`;
  const parsed = parseJson(text(100_000)) as object[];
  expect([parsed.length, Object.entries(parsed.at(-1) ?? {})]).toEqual([100_000, [['\n', 0]]]);
});

test.each([
  '1729384756102938475',
  '-1729384756102938475',
  '9007199254740993',
  '0.12345678901234567890',
  '1.7976931348623157000000000001e308',
  '1e-400',
  '123456789012345678901234567890.5e-3',
])('the digits of %s are kept', (number) => {
  expect(JSON.stringify(parseExactJson(`{"a":[${number}]}`))).toBe(`{"a":[${number}]}`);
});

test.each([
  ['0', 0],
  ['-0', -0],
  ['1.10', 1.1],
  ['100e-2', 1],
  ['9007199254740992', 9007199254740992],
  ['1e21', 1e21],
  ['1000000000000000000000000', 1e24],
  ['0.1', 0.1],
  ['5e-324', 5e-324],
  ['0.000e9999', 0],
])('a 64-bit float holds %s', (text, value) => {
  expect(parseExactJson(text)).toBe(value);
});

test('it refuses the texts that JSON.parse refuses, and parses all others to equal values', () => {
  const pieces = [
    '{',
    '}',
    '[',
    ']',
    ',',
    ':',
    '"a"',
    '"\\n"',
    '"\n"',
    '1',
    '-',
    '01',
    '1.',
    '.5',
    '2e',
    '2e+1',
    ' ',
    'true',
    'nul',
    '\t',
  ];
  let valid = 0;
  for (let seed = 1; seed < 60_000; seed += 1) {
    let state = seed;
    let text = '';
    for (let length = seed % 7; length >= 0; length -= 1) {
      state = (state * 48_271) % 2_147_483_647;
      text += pieces[state % pieces.length];
    }
    const outcome = (parse: (text: string) => unknown) => {
      try {
        return { value: parse(text) };
      } catch (error) {
        return (error as Error).name;
      }
    };
    const expected = outcome(JSON.parse);
    expect(outcome(parseExactJson), text).toEqual(expected);
    valid += typeof expected === 'string' ? 0 : 1;
  }
  expect(valid).toBeGreaterThan(1_000);
});

test('a number that is too large for a 64-bit float becomes Infinity', () => {
  expect(parseExactJson('[1e999]')).toEqual([Number.POSITIVE_INFINITY]);
});
