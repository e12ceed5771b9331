import { isUtf8 } from 'node:buffer';
import fc from '@sluice/shared/testing/fast-check';
import { expect, test } from 'vitest';
import { parseSlice, parsingFault } from './body-slices.ts';
import { CanonicalEvents } from './canonical-events.ts';
import { parseEvent } from './event-parser.ts';
import { JsonCursor } from './json-cursor.ts';
import type { SubmittedEvent } from './submission.ts';

const limits = { bytesMax: 4_000, timestampMsMax: Date.UTC(2026, 2, 2) };

/** What parsing makes of the event that a text begins with; `undefined` when it is not valid. */
function parsed(text: Buffer): SubmittedEvent | undefined {
  try {
    const slice = new JsonCursor(text).skip();
    if (slice.size > limits.bytesMax || parsingFault(slice) !== undefined) return undefined;
    return parseEvent(parseSlice(text, slice), limits.timestampMsMax);
  } catch {
    return undefined;
  }
}

/** Checks that an event that is read is the one that parsing returns. Returns whether it is read. */
function check(text: string | Buffer): boolean {
  const bytes = Buffer.from(text);
  if (!isUtf8(bytes)) return false;
  const reader = new CanonicalEvents(bytes, limits);
  const event = reader.read(0);
  if (event === undefined) return false;
  const read = bytes.subarray(0, reader.end);
  expect(event, bytes.toString()).toEqual(parsed(read));
  expect(new JsonCursor(read).skip().end).toBe(read.length);
  return true;
}

const EVENT =
  '{"event":"member_invited","uuid":"00000000-0000-4000-8000-0000000000ff","timestamp":"2026-03-01T12:00:00.000Z",' +
  '"anonymousId":"anon-7f3a","type":"track","properties":{"plan":"büsiness","seats":42,"trial":false,"price":-199.5,' +
  '"tags":["web",[],{}],"device":{"os":"Linux","width":2560,"none":null},"tiny":0.000001},"context":{"ip":"::1"}}';

test('what producers send is read as it is', () => {
  expect(check(EVENT)).toBe(true);
  const event = new CanonicalEvents(Buffer.from(`${EVENT},`), limits).read(0);
  expect(event).toMatchObject({
    event: 'member_invited',
    type: 'track',
    properties: expect.stringContaining('büsiness'),
  });
  for (const fields of ['"event":"e"', '"traits":{},"event":"é"', '"instanceId":"i","event":"e","context":{"a":1}']) {
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
  `{"event":"e","properties":{"a":"${'x'.repeat(4_000)}"}}`,
  `{"event":"${'x'.repeat(201)}"}`,
  '{"event":""}',
  '{}',
  '{"event":"e","colour":1}',
  '{"event":"e","anonymousId":""}',
  '{"event":"e","anonymousId":null}',
  '{"event":"e","properties":[]}',
  '{"event":"e","type":"page"}',
  '{"event":"e","uuid":"00000000-0000-9000-8000-0000000000ff"}',
  '{"event":"e","uuid":"00000000-0000-4000-7000-0000000000ff"}',
  '{"event":"e","uuid":"00000000-0000-4000-8000-0000000000fF"}',
  '{"event":"e","uuid":"ffffffff-ffff-7fff-bfff-ffffffffffff"}',
  ...[
    '2026-02-29T00:00:00.000Z',
    '2026-03-03T00:00:00.000Z',
    '1999-12-31T23:59:59.999Z',
    '2026-01-01T24:00:00.000Z',
  ].map((timestamp) => `{"event":"e","timestamp":"${timestamp}"}`),
  ...[
    '2026-04-31T00:00:00.000Z',
    '2026-01-01T00:60:00.000Z',
    '2026-13-01T00:00:00.000Z',
    '0026-01-01T00:00:00.000Z',
  ].map((timestamp) => `{"event":"e","timestamp":"${timestamp}"}`),
])('is left to be parsed: %s', (text) => {
  expect(check(text)).toBe(false);
});

test('an event with any one byte changed, left out or doubled is read as parsing reads it, or not at all', () => {
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

test('generated events are read as parsing reads them, or not at all', () => {
  let readable = 0;
  const members = fc.array(fc.tuple(fc.string({ unit: 'grapheme', maxLength: 3 }), jsonText), { maxLength: 6 });
  fc.assert(
    fc.property(members, (properties) => {
      const text = properties.map(([name, value]) => `${JSON.stringify(name)}:${value}`).join();
      readable += check(`{"event":"e","properties":{${text}}}`) ? 1 : 0;
    }),
    { numRuns: 3_000 },
  );
  expect(readable).toBeGreaterThan(500);
});
