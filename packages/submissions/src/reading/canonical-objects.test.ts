import { isUtf8 } from 'node:buffer';
import fc from '@sluice/shared/testing/fast-check';
import { expect, test } from 'vitest';
import { parseSlice } from './body-slices.ts';
import { CanonicalObjects } from './canonical-objects.ts';
import { JsonCursor } from './json-cursor.ts';
import { encodeJson, errorOfObject, ObjectText } from './json-object.ts';
import type { JsonSlice } from './json-slice.ts';

/** What parsing makes of the members of the object that a text begins with. */
function parsed(text: Buffer): Record<string, unknown> {
  return parseSlice(text, new JsonCursor(text).skip()) as Record<string, unknown>;
}

/** What is stored of a member: of an object, its text. */
function stored(member: unknown): unknown {
  if (member instanceof ObjectText) return member.json;
  return typeof member === 'object' && member !== null ? encodeJson(member) : member;
}

/** Checks that an object that is read is the one that parsing returns. Returns whether it is read. */
function check(text: string | Buffer): boolean {
  const bytes = Buffer.from(text);
  if (!isUtf8(bytes)) return false;
  const object = new CanonicalObjects(bytes).read(0);
  if (object === undefined) return false;
  const { members = {}, ...slice } = object;
  const read = bytes.subarray(0, slice.end);
  const expected = parsed(read);
  expect(Object.keys(members), bytes.toString()).toEqual(Object.keys(expected));
  for (const [name, value] of Object.entries(expected)) {
    expect(stored(members[name]), bytes.toString()).toEqual(stored(value));
    if (members[name] instanceof ObjectText) expect(errorOfObject(members[name].parse())).toBeUndefined();
  }
  expect(slice).toEqual(new JsonCursor(read).skip() satisfies JsonSlice);
  return true;
}

const EVENT =
  '{"event":"member_invited","uuid":"00000000-0000-4000-8000-0000000000ff","timestamp":"2026-03-01T12:00:00.000Z",' +
  '"anonymousId":"anon-7f3a","type":"track","properties":{"plan":"büsiness","seats":42,"trial":false,"price":-199.5,' +
  '"tags":["web",[],{}],"device":{"os":"Linux","width":2560,"none":null},"tiny":0.000001},"context":{"ip":"::1"}}';

test('what producers send is read as it is', () => {
  expect(check(EVENT)).toBe(true);
  const members = new CanonicalObjects(Buffer.from(`${EVENT},`)).read(0)?.members;
  expect(members).toMatchObject({ event: 'member_invited', type: 'track' });
  expect(stored(members?.['properties'])).toContain('büsiness');
  for (const fields of ['"event":"e"', '"traits":{},"event":"é"', '"n":-1.5,"b":true,"context":{"a":1},"none":null']) {
    expect(check(`{${fields}}`), fields).toBe(true);
  }
});

test.each([
  '{"event":"e","properties":{"a":1,"a":2}}',
  '{"event":"e","event":"f"}',
  '{"event":"e","properties":{"2":1,"1":2}}',
  '{"event":"e","properties":{"a":"\\u0061"}}',
  '{"event":"e","properties":{"\\u0061":1}}',
  '{"event":"e","properties":{"a": 1}}',
  '{"event" :"e"}',
  '{"__proto__":{"a":1}}',
  ...[
    '-0',
    '1.0',
    '0.10',
    '1e2',
    '1E2',
    '01',
    '-',
    '1.',
    '.5',
    '0.0000001',
    '1234567890123456',
    '12345678.90123456',
  ].map((number) => `{"event":"e","properties":{"a":${number}}}`),
  ...['tru', 'nul', 'truee', 'undefined', 'NaN', '"a', "'a'", '', '[1,]', '{"b":1,}', '[1 2]'].map(
    (value) => `{"event":"e","properties":{"a":${value}}}`,
  ),
  `{"event":"e","properties":${'{"a":'.repeat(32)}{}${'}'.repeat(32)}}`,
  `{"event":"e","properties":{${Array.from({ length: 65 }, (_, index) => `"n${index}":1`).join()}}}`,
  `{"event":"e","properties":{"a":[${Array(10_000).fill(1).join()}]}}`,
  `{${Array.from({ length: 33 }, (_, index) => `"n${index}":1`).join()}}`,
  '{"event":["e"]}',
  '{}',
  '{',
  '[]',
])('is left to be parsed: %s', (text) => {
  expect(check(text)).toBe(false);
});

test('an object with any one byte changed, left out or doubled is read as parsing reads it, or not at all', () => {
  const bytes = [...Buffer.from(EVENT)];
  const others = [...Buffer.from('"{}[]:,\\ 0179.-eE+atZT\n\0\x7f'), 0xc3, 0xff];
  let readable = 0;
  for (const [index, byte] of bytes.entries()) {
    const variants = [[], [byte, byte], ...others.map((other) => [other])];
    for (const variant of variants) readable += check(Buffer.from(bytes.toSpliced(index, 1, ...variant))) ? 1 : 0;
  }
  expect(readable).toBeGreaterThan(1_000);
});

/** JSON texts in every spelling that JSON allows, most of them canonical. */
const { value: jsonText } = fc.letrec<{ value: string; object: string; array: string }>((tie) => {
  const space = fc.constantFrom(...Array(30).fill(''), ' ', '\n\t');
  const string = fc.oneof(
    { weight: 9, arbitrary: fc.string({ unit: 'grapheme', maxLength: 8 }).map((text) => JSON.stringify(text)) },
    {
      weight: 1,
      arbitrary: fc.constantFrom('"\\u0061"', '"\\ud800"', '"\\/"', '"\\n"', '"__proto__"', '"7"', '"toString"'),
    },
  );
  const number = fc.oneof(
    fc.integer().map(String),
    fc.double({ noNaN: true, noDefaultInfinity: true }).map(String),
    fc.tuple(fc.integer(), fc.nat()).map(([whole, fraction]) => `${whole}.${fraction}`),
    fc.constantFrom('-0', '0.0', '1e5', '1E-7', '0.000001', '0.0000001', '123456789012345', '1234567890123456'),
  );
  const member = fc.tuple(space, string, space, space, tie('value'), space);
  return {
    object: fc
      .array(member, { maxLength: 4 })
      .map((members) => `{${members.map(([a, name, b, c, value, d]) => `${a}${name}${b}:${c}${value}${d}`).join()}}`),
    array: fc.array(tie('value'), { maxLength: 4 }).map((values) => `[${values.join()}]`),
    value: fc.oneof(
      { depthSize: 'small' },
      fc.constantFrom('true', 'false', 'null'),
      string,
      number,
      tie('object'),
      tie('array'),
    ),
  };
});

test('generated objects are read as parsing reads them, or not at all', () => {
  let readable = 0;
  const members = fc.array(fc.tuple(fc.string({ unit: 'grapheme', maxLength: 3 }), jsonText), { maxLength: 6 });
  fc.assert(
    fc.property(members, (properties) => {
      const text = properties.map(([name, value]) => `${JSON.stringify(name)}:${value}`).join();
      readable += check(`{${text}}`) ? 1 : 0;
      readable += check(`{"event":"e","properties":{${text}}}`) ? 1 : 0;
    }),
    { numRuns: 3_000 },
  );
  expect(readable).toBeGreaterThan(500);
});
