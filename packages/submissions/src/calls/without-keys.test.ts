import fc from '@sluice/shared/testing/fast-check';
import { expect, test } from 'vitest';
import { withoutKeys } from './without-keys.ts';

const KEY = `sk_${'k'.repeat(20)}_-${'9'.repeat(21)}`;
const OTHER = `sk_${'o'.repeat(43)}`;

/** Spells a text of JSON with any characters of its strings as `\u` escapes. */
const spelled = (json: string) =>
  fc.infiniteStream(fc.integer({ min: 0, max: 3 })).map((choices) =>
    json.replaceAll(/(?<=["\w-])[\w-](?=["\w-])/g, (character) => {
      const { value } = choices.next();
      const hex = character.charCodeAt(0).toString(16).padStart(4, '0');
      return value === 0 ? `\\u${hex}` : value === 1 ? `\\u${hex.toUpperCase()}` : character;
    }),
  );

const event = {
  event: 'e',
  token: OTHER,
  properties: {
    $token: OTHER,
    api_key: [{ key: OTHER }, 'x'],
    $current_url: `https://example.com/?api_key=${KEY}&other=${OTHER}`,
    [KEY]: 1,
    nested: { token: 'kept', list: [KEY, `a${KEY}b`, 'kept'] },
  },
};

const REDACTED = {
  event: 'e',
  token: '',
  properties: {
    ...{ $token: '', api_key: '', $current_url: 'https://example.com/?api_key=&other=', '': 1 },
    nested: { token: 'kept', list: ['', 'ab', 'kept'] },
  },
};

test('no key stands in a call, in any spelling, and nothing else is gone', () => {
  fc.assert(
    fc.property(spelled(JSON.stringify(event)), (json) => {
      expect(JSON.parse(json)).toEqual(event);
      expect(JSON.parse(withoutKeys(json, 'posthog', [KEY]))).toEqual(REDACTED);
    }),
  );
});

test('a call that is cut off anywhere has no key, and no beginning of one', () => {
  const json = JSON.stringify(event).replace(KEY, KEY.replace('k', '\\u006b'));
  for (let length = 0; length <= json.length; length += 1) {
    const text = withoutKeys(json.slice(0, length), 'posthog', [KEY, OTHER]);
    expect(text.replaceAll('\\u006b', 'k')).not.toMatch(/sk_|kk|oo|99/);
  }
});

test('a short key is taken out where it is a whole text, and where a call has its key', () => {
  const call = { type: 'track', event: 'all', writeKey: 'secret', properties: { writeKey: 'kept', all: 'all of it' } };
  expect(JSON.parse(withoutKeys(JSON.stringify(call), 'batch', ['all']))).toEqual({
    ...{ type: 'track', event: '', writeKey: '', properties: { writeKey: 'kept', '': 'all of it' } },
  });
});

test.each([
  ['a bad escape', `{"token":"\\x${OTHER}","a":"\\q${KEY}"}`, '{"token":"","a":"q"}'],
  ['a line feed in a string', `{"a":"\n${KEY}"}`, '{"a":"\\n"}'],
  ['no names', `[{"token":"kept"},"${KEY}",tru]`, '[{"token":"kept"},"",tru]'],
  ['a single string', `"${KEY}"`, '""'],
  ['white space', `{ "api_key" : "${OTHER}" , "a" : 1 }`, '{ "api_key" : "", "a" : 1 }'],
  ['a number for a key', '{"token":12,"a":1}', '{"token":"","a":1}'],
  ['brackets that do not match', `{"a":[{"token":"kept"}}],"b":"${KEY}"`, '{"a":[{"token":"kept"}}],"b":""'],
])('a text with %s is read as far as it goes', (_what, text, expected) => {
  expect(withoutKeys(text, 'posthog', [KEY])).toBe(expected);
});

test('a call with more keys than any client sends loses all its strings: to look for each key in each would take a square', () => {
  const call = (count: number) =>
    `{"event":"e",${Array.from({ length: count }, (_, index) => `"writeKey":"${String(index).padStart(16, 'k')}"`).join(',')},"n":1}`;
  expect(withoutKeys(call(16), 'batch', [])).toContain('"event":"e"');
  expect(withoutKeys(call(17), 'batch', [])).toBe(`{${'"":"",'.repeat(18)}"":1}`);
});
