import { randomUUID } from 'node:crypto';
import fc from '@sluice/shared/testing/fast-check';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { asText, conditionsFor, textOf } from '../../testing/conditions.ts';
import { anEvent, aRegister, type QueryService, startQuery } from '../../testing/query-service.ts';
import { meets } from '../../testing/reference.ts';
import type { Condition } from '../filters/operators.ts';
import { searchedTexts } from '../filters/property-condition.ts';
import { DOCUMENT_FIELDS, type DocumentField } from './event-columns.ts';

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

/** Every place in a document, with the name that finds it: keys joined by dots. An array is also found by its items. */
function* places(node: unknown, path: readonly string[] = []): Generator<{ name: string; value: unknown }> {
  if (path.length > 0) yield { name: path.join('.'), value: node };
  if (typeof node !== 'object' || node === null) return;
  if (path.length > 0 && Array.isArray(node)) for (const item of node) yield { name: path.join('.'), value: item };
  for (const [name, member] of Object.entries(node)) yield* places(member, [...path, name]);
}

/** JSON as ingest-api writes it: a negative zero keeps its sign. */
function encode(node: unknown): string {
  if (Object.is(node, -0)) return '-0';
  if (Array.isArray(node)) return `[${node.map(encode).join(',')}]`;
  if (typeof node !== 'object' || node === null) return JSON.stringify(node);
  return `{${Object.entries(node)
    .map(([name, member]) => `${JSON.stringify(name)}:${encode(member)}`)
    .join(',')}}`;
}

/** The uuids that a request finds, sorted. */
async function find(parameters: [string, string][]): Promise<unknown[]> {
  const { status, body } = await query.get(`/events?limit=1000&total=none&${new URLSearchParams(parameters)}`);
  expect(status, JSON.stringify(body)).toBe(200);
  return body.results.map(({ uuid }) => uuid).sort();
}

interface Filter {
  readonly name: string;
  readonly condition: Condition;
}

function equals(name: string, value: string): Filter {
  return { name, condition: { operator: 'eq', value } };
}

/** Stores documents as one of the objects of events, and compares what filters find with the reference. */
async function expectSameAsReference(
  documents: readonly unknown[],
  filters: readonly Filter[],
  column: DocumentField = 'properties',
): Promise<void> {
  await query.clickHouse.command({ query: 'TRUNCATE TABLE events' });
  const stored = documents.map((document) => ({ document, json: encode(document), uuid: randomUUID() }));
  await query.store(
    'a',
    stored.map(({ json, uuid }) => anEvent({ uuid, [column]: json })),
  );
  for (const { name, condition } of filters) {
    const expected = stored.filter(({ document }) => meets(document, name, condition));
    const parameter = [`${column}.${name}[${condition.operator}]`, textOf(condition, true)] satisfies [string, string];
    expect(await find([parameter]), parameter.join('=')).toEqual(expected.map(({ uuid }) => uuid).sort());
    const texts = searchedTexts({ document: column, name, condition });
    const without = expected.filter(({ json }) => texts && !texts.some((text) => json.includes(text)));
    expect(without, `${parameter.join('=')} in ${texts}`).toEqual([]);
  }
}

/** Whether a request can have the filter: Unicode text, no empty value, few dots. */
function isValid({ name, condition }: Filter): boolean {
  const text = textOf(condition, true);
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
          return equals(place.name, asText(place.value));
        });
        const further = others.map(([name, text]) => equals(name, text));
        await expectSameAsReference(documents, [...known, ...further].filter(isValid));
      },
    ),
    { numRuns: 12 },
  );
});

test('every operator finds what the contract says it should, and nothing else, in every document', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(document, { minLength: 1, maxLength: 12 }),
      fc.constantFrom(...DOCUMENT_FIELDS),
      fc.infiniteStream(fc.tuple(fc.nat(), fc.nat(), fc.oneof(key, fc.constant(undefined)))),
      fc.gen(),
      async (documents, column, choices, generate) => {
        const found = documents.flatMap((one) => [...places(one)]);
        fc.pre(found.length > 0);
        const filters = [...choices.take(12)].map(([choice, otherChoice, otherName]): Filter => {
          const place = found[choice % found.length] as { name: string; value: unknown };
          const other = found[otherChoice % found.length] as { name: string; value: unknown };
          const condition = generate(() => conditionsFor(place.value, other.value));
          return { name: choice % 5 === 0 && otherName !== undefined ? otherName : place.name, condition };
        });
        await expectSameAsReference(documents, filters.filter(isValid), column);
      },
    ),
    { numRuns: 15 },
  );
});

test('numbers at the edges of IEEE 754 are found by their JSON, at any depth', async () => {
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
  const whole = documents.map(({ n }) => equals('n', asText(n)));
  const nested = numbers.map((one) => equals('n.m', JSON.stringify(one)));
  await expectSameAsReference(documents, [
    ...whole,
    ...nested,
    ...['-0', '1e21', '1.0', '00'].map((text) => equals('n', text)),
  ]);
});

test('numbers and texts at the edges are compared with their own kind, and searched', async () => {
  const values = [-0, 0, 5e-324, -1, 1.5, 2 ** 53, 2 ** 63, -(2 ** 63), 2 ** 64, 1e20, 123456789012345680000, 1e21];
  const texts = [
    '',
    '10',
    '9',
    'a',
    'B',
    'ä',
    '\ufffd',
    '\u{1f600}',
    '\ud800',
    ',1234567890123456789',
    '\0d800',
    'x\ud800y',
    'x\ufffdz',
    'a\\"\u0001b',
    '"10"',
  ];
  const documents = [...values, ...texts, null, true, [1], { m: 1 }].flatMap((n) => [{ n }, { '\ud800': n, n }]);
  const wellFormed = texts.filter((text) => text.isWellFormed());
  const compared = [...values, ...wellFormed].flatMap((value) =>
    (['lt', 'lte', 'gt', 'gte'] as const).map((operator) => ({ name: 'n', condition: { operator, value } })),
  );
  const searched = [...wellFormed, '"', '\\', '\u0001', ',123', '.0', '0000', 'd800'].flatMap((value) =>
    (['prefix', 'contains'] as const).map((operator) => ({ name: 'n', condition: { operator, value } })),
  );
  await expectSameAsReference(documents, [...compared, ...searched].filter(isValid));
});

test('eq, ne and in find an array by its items, and do not look into arrays and objects among them', async () => {
  const tags = [
    ['red'],
    ['green', 'red'],
    ['red, green', 'x}]'],
    ['a,100000000000000000000', 1e20, ':-1000000000000000000'],
    [['red']],
    [{ red: 'red', tags: 'blue' }],
    [1, true, null, -0, 1.5, '2'],
    [],
    'red',
    { red: 1 },
  ];
  const texts = [
    ...['red', 'green', 'red, green', 'x}]', 'blue', '1', 'true', 'null', '0', '1.5', '2', '["red"]', '[]'],
    ...['a,100000000000000000000', '100000000000000000000', ':-1000000000000000000'],
  ];
  const filters = texts.flatMap((text): Filter[] => [
    equals('tags', text),
    { name: 'tags', condition: { operator: 'ne', value: text } },
    { name: 'tags', condition: { operator: 'in', value: [text, 'green'] } },
    equals('of.tags', text),
  ]);
  const documents = [...tags.map((one) => ({ tags: one })), ...tags.map((one) => ({ of: { tags: one } }))];
  for (const column of DOCUMENT_FIELDS) await expectSameAsReference(documents, filters, column);
  // The other operators look at the array itself.
  const others = (['prefix', 'contains', 'gte'] as const).map((operator): Filter => {
    return { name: 'tags', condition: { operator, value: 'red' } };
  });
  await expectSameAsReference(documents, others);
});

test('an object at the greatest depth is found, and reached into', async () => {
  const deep = (levels: number): unknown => (levels === 0 ? 'end' : { a: deep(levels - 1) });
  await expectSameAsReference(
    [deep(32), deep(3), { 'a.a': { a: 'end' } }, { a: [{ a: 'end' }] }],
    [equals('a.a.a', 'end'), equals('a', JSON.stringify(deep(31))), equals('a.a', JSON.stringify(deep(30)))],
  );
});

test('a filter looks into one of the three documents of an event', async () => {
  await query.clickHouse.command({ query: 'TRUNCATE TABLE events' });
  const stored = DOCUMENT_FIELDS.map((column) => ({ column, event: anEvent({ [column]: '{"a":1}' }) }));
  await query.store(
    'a',
    stored.map(({ event }) => event),
  );
  for (const { column, event } of stored) expect(await find([[`${column}.a`, '1']])).toEqual([event.uuid]);
  expect(
    await find([
      ['properties.a', '1'],
      ['traits.a', '1'],
    ]),
  ).toEqual([]);
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
      ['properties.a', '1'],
      ['properties.b.c', 'x'],
    ]),
  ).toEqual([both.uuid]);
});

test('a name with more than six dots is refused with that reason', async () => {
  const { status, body } = await query.get('/events?properties.a.b.c.d.e.f.g.h=1');
  expect(status).toBe(400);
  expect(body.errors).toMatchObject([
    { path: 'properties.a.b.c.d.e.f.g.h', message: expect.stringContaining('at most 6 dots') },
  ]);
});

test('a filter whose name and value are both wrong is named with both, and too many are too many whatever else is wrong', async () => {
  const name = 'properties.a.b.c.d.e.f.g.h[in]';
  const items = Array.from({ length: 101 }, (_, index) => index).join(',');
  const { body } = await query.get(`/events?${name}=${items}`);
  expect(body.errors.map(({ path, message }) => [path, message])).toEqual([
    [name, expect.stringContaining('at most 6 dots')],
    [name, expect.stringContaining('at most 100 items')],
  ]);
  const filters = Array.from({ length: 21 }, (_, index) => `properties.p${index}[gt]=x`).join('&');
  const { body: many } = await query.get(`/events?${filters}`);
  expect(many.errors.map(({ code }) => code)).toContain('too_many');
});

test('integers that no double holds are returned digit by digit, and equal only themselves', async () => {
  const ids = ['1729384756102938475', '1729384756102938476', '9007199254740993', '-9007199254740993'];
  const long = ['0.12345678901234567890', '123456789012345678901234567890', '-9999999999999999999'];
  const document = (id: string) => `{"id":${id},"of":{"id":1729384756102938475}}`;
  const events = [...ids, ...long].map((id) => anEvent({ properties: document(id), traits: document(id) }));
  await query.store('h', events);
  await query.insert(
    'entity_properties',
    ids.map((id) => ({
      ...{ workspace_id: 'h', kind: 'user', id: `user ${id}`, property: 'id' },
      register: aRegister(1, 'set', id),
    })),
  );
  const seen = { first_seen_at: 0, last_seen_at: 0, version: 1 };
  await query.insert(
    'entities',
    ids.map((id) => ({ workspace_id: 'h', kind: 'user', id: `user ${id}`, ...seen })),
  );

  const page = (await query.get('/events?limit=1000', 'h')).text;
  for (const id of [...ids, ...long]) expect(page).toContain(`"properties":${document(id)}`);
  const users = (await query.get('/users', 'h')).text;
  for (const id of ids) expect(users).toContain(`"properties":{"id":${id}}`);

  const found = async (filter: string) => {
    const { body } = await query.get(`/events?${filter}&limit=1000`, 'h');
    return events
      .filter(({ uuid }) => body.results.some((result) => result['uuid'] === uuid))
      .map((event) => event.properties.slice('{"id":'.length, event.properties.indexOf(',"of"')));
  };
  for (const name of ['properties.id', 'traits.id']) {
    for (const id of ids) {
      expect(await found(`${name}=${id}`)).toEqual([id]);
      expect(await found(`${name}[ne]=${id}`)).toEqual([...ids, ...long].filter((other) => other !== id));
    }
    expect(await found(`${name}[in]=${ids.join(',')}`)).toEqual(ids);
    // The double nearest to two of them.
    expect(await found(`${name}=1729384756102938400`)).toEqual([]);
    expect(await found(`${name}[gt]=9007199254740992`)).toEqual([ids[0], ids[1], ids[2], long[1]]);
    expect(await found(`${name}[lte]=9007199254740992`)).toEqual([ids[3], long[0], long[2]]);
    expect((await query.get(`/events?${name}[gt]=1729384756102938475`, 'h')).status).toBe(400);
  }
  for (const id of ids) {
    const { body } = await query.get(`/users?properties.id=${id}`, 'h');
    expect(body.results.map(({ foreignId }) => foreignId)).toEqual([`user ${id}`]);
  }
});
