import { randomUUID } from 'node:crypto';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { anEvent, type QueryService, startQuery } from './testing/query.ts';
import { hasProperty } from './testing/reference.ts';

let query: QueryService;

beforeAll(async () => {
  query = await startQuery(inject('clickhouseUrl'));
});
afterAll(() => query.stop());

const key = fc.oneof(
  fc.constantFrom(
    'a',
    'b',
    'a.b',
    'b.a',
    '',
    '.',
    '__proto__',
    'constructor',
    '0',
    '1',
    'length',
    'a"b',
    "a'b",
    '\\',
    'a\0',
    ',1234567890123456789',
    'ä',
    '\u{1f600}',
    '\u2028',
  ),
  fc.string({ unit: 'binary', maxLength: 4 }).filter((name) => name.isWellFormed()),
);
const string = fc.oneof(
  fc.constantFrom(
    '',
    'x',
    '1',
    'true',
    'null',
    '{}',
    '"x"',
    '\ud800',
    '\udfff\ud800',
    '\\ud800',
    '\0',
    '\0' + 'd800',
    ',12345678901234567890',
    'a\u0001\u001f\u007f/\b\f\n\r\t"\\',
    '\u{10ffff}\ufffd',
  ),
  fc.string({ unit: 'binary', maxLength: 8 }),
);
const number = fc.oneof(
  fc.constantFrom(
    0,
    -0,
    1,
    -1,
    0.1,
    4.35,
    5e-324,
    1.7976931348623157e308,
    -1.7976931348623157e308,
    2.2250738585072014e-308,
    1e21,
    1e20,
    123456789012345680000,
    999999999999999900000,
    2 ** 53,
    2 ** 63,
    -(2 ** 63),
    2 ** 64,
    -(2 ** 64),
    1e-6,
    1e-7,
    0.000001234567890123456,
  ),
  fc.double({ noNaN: true, noDefaultInfinity: true }),
  fc.maxSafeInteger(),
);
const value: fc.Arbitrary<unknown> = fc.letrec((tie) => ({
  value: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    fc.constant(null),
    fc.boolean(),
    string,
    number,
    tie('array'),
    tie('object'),
  ),
  array: fc.array(tie('value'), { maxLength: 3 }),
  object: fc
    .uniqueArray(fc.tuple(key, tie('value')), { maxLength: 4, selector: ([name]) => name })
    .map(Object.fromEntries),
})).value;
const document = fc
  .uniqueArray(fc.tuple(key, value), { maxLength: 5, selector: ([name]) => name })
  .map((entries): Record<string, unknown> => Object.fromEntries(entries));

/** Every place in a document, with the text that finds it: names joined by dots. */
function* places(node: unknown, path: readonly string[] = []): Generator<{ name: string; value: unknown }> {
  if (path.length > 0) yield { name: path.join('.'), value: node };
  if (typeof node !== 'object' || node === null) return;
  for (const [name, member] of Object.entries(node)) yield* places(member, [...path, name]);
}

function asText(found: unknown): string {
  return typeof found === 'string' ? found : JSON.stringify(found);
}

/** JSON as it is written to Kafka: a negative zero keeps its sign. */
function encode(node: unknown): string {
  if (Object.is(node, -0)) return '-0';
  if (Array.isArray(node)) return `[${node.map(encode).join(',')}]`;
  if (typeof node !== 'object' || node === null) return JSON.stringify(node);
  return `{${Object.entries(node)
    .map(([name, member]) => `${JSON.stringify(name)}:${encode(member)}`)
    .join(',')}}`;
}

async function find(filters: readonly (readonly [string, string])[]): Promise<unknown[]> {
  const parameters = filters.map(
    ([name, text]) => `${encodeURIComponent(`properties.${name}`)}=${encodeURIComponent(text)}`,
  );
  const { status, body } = await query.get(`/events?limit=1000&total=none&${parameters.join('&')}`);
  expect(status, JSON.stringify(body)).toBe(200);
  return body.results.map(({ uuid }) => uuid).sort();
}

async function expectSameAsReference(documents: readonly unknown[], questions: readonly (readonly [string, string])[]) {
  await query.clickHouse.command({ query: 'TRUNCATE TABLE events' });
  const stored = documents.map((properties) => ({ properties, uuid: randomUUID() }));
  await query.store(
    'a',
    stored.map(({ properties, uuid }) => anEvent({ uuid, properties: encode(properties) })),
  );
  for (const [name, text] of questions) {
    const expected = stored.filter(({ properties }) => hasProperty(properties, name, text)).map(({ uuid }) => uuid);
    expect(await find([[name, text]]), `properties.${JSON.stringify(name)}=${text}`).toEqual(expected.sort());
  }
}

/** What a URL can ask for: Unicode text, not empty, few dots. */
function askable([name, text]: readonly [string, string]): boolean {
  return name.isWellFormed() && text.isWellFormed() && text !== '' && name.split('.').length <= 7;
}

test('a property filter finds what JSON.stringify says it should, and nothing else', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(document, { minLength: 1, maxLength: 12 }),
      fc.array(
        fc.tuple(
          fc.oneof(
            key,
            fc.tuple(key, key).map((keys) => keys.join('.')),
          ),
          fc.oneof(string, value.map(asText)),
        ),
        { maxLength: 2 },
      ),
      fc.infiniteStream(fc.nat()),
      async (documents, others, choices) => {
        const found = documents.flatMap((one) => [...places(one)]);
        const known = [...choices.take(Math.min(found.length, 8))].map((choice) => {
          const place = found[choice % found.length] as { name: string; value: unknown };
          return [place.name, asText(place.value)] as const;
        });
        await expectSameAsReference(documents, [...known, ...others].filter(askable));
      },
    ),
    { numRuns: 25 },
  );
});

test('numbers at the edges of IEEE 754 are found by their JSON, in any depth', async () => {
  const numbers = [
    -0,
    0,
    5e-324,
    1.7976931348623157e308,
    1e21,
    1e20,
    0.1,
    2 ** 53,
    2 ** 63,
    -(2 ** 63),
    2 ** 64,
    -(2 ** 64),
    1e-7,
  ];
  const documents = numbers.flatMap((one) => [
    { n: one },
    { n: [one, 'x', { deep: one }] },
    { n: { m: one } },
    { n: String(one) },
  ]);
  const questions = documents.map(({ n }) => ['n', asText(n)] as const);
  const nested = numbers.map((one) => ['n.m', JSON.stringify(one)] as const);
  await expectSameAsReference(documents, [
    ...questions,
    ...nested,
    ['n', '-0'],
    ['n', '1e21'],
    ['n', '1.0'],
    ['n', '00'],
  ]);
});

test('an object at the greatest depth is found, and reached into', async () => {
  const deep = (levels: number): unknown => (levels === 0 ? 'end' : { a: deep(levels - 1) });
  await expectSameAsReference(
    [deep(32), deep(3), { 'a.a': { a: 'end' } }, { a: [{ a: 'end' }] }],
    [
      ['a.a.a', 'end'],
      ['a', JSON.stringify(deep(31))],
      ['a.a', JSON.stringify(deep(30))],
    ],
  );
});

test('several property filters must all hold', async () => {
  await query.clickHouse.command({ query: 'TRUNCATE TABLE events' });
  const [both, one] = [
    anEvent({ properties: '{"a":1,"b":{"c":"x"}}' }),
    anEvent({ properties: '{"a":1,"b":{"c":"y"}}' }),
  ];
  await query.store('a', [both, one]);
  expect(
    await find([
      ['a', '1'],
      ['b.c', 'x'],
    ]),
  ).toEqual([both.uuid]);
});

test('a name with more than six dots is refused, saying so', async () => {
  const { status, body } = await query.get('/events?properties.a.b.c.d.e.f.g.h=1');
  expect(status).toBe(400);
  expect(body.errors).toMatchObject([
    { path: 'properties.a.b.c.d.e.f.g.h', message: expect.stringContaining('at most 6 dots') },
  ]);
});
