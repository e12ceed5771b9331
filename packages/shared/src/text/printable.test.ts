import { expect, test } from 'vitest';
import { printable } from './printable.ts';

test.each([
  ['a C0 control', '\u001b[2J', '\\u001b[2J'],
  ['a line feed, a tab and NUL', '\n\t\0', '\\u000a\\u0009\\u0000'],
  ['DEL', '\u007f', '\\u007f'],
  ['a C1 control', '\u009b31m', '\\u009b31m'],
  ['bidirectional overrides and isolates', '\u202e\u2066\u200f\u061c', '\\u202e\\u2066\\u200f\\u061c'],
  ['line and paragraph separators', '\u2028\u2029', '\\u2028\\u2029'],
  ['a byte order mark and a zero width space', '\ufeff\u200b', '\\ufeff\\u200b'],
  ['a lone surrogate', 'a\ud800b', 'a\\ud800b'],
  ['a tag character beyond the first plane', '\u{e0041}', '\\udb40\\udc41'],
  ['text of any language', 'Grüße, 世界 שלום 😀', 'Grüße, 世界 שלום 😀'],
])('%s', (_what, text, shown) => {
  expect(printable(text)).toBe(shown);
});

test('JSON keeps its meaning', () => {
  const value = { '\u007f\u2028': ['\u009b', '\u202e', '\u{e0041}', '\\u0041', '"'] };
  expect(JSON.parse(printable(JSON.stringify(value)))).toEqual(value);
});
