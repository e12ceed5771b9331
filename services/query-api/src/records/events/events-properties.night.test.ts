import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { asText } from '../../testing/conditions.ts';
import { equals, expectSameAsReference, type Filter, isValid } from '../../testing/property-filters.ts';
import { anEvent, aRegister, type QueryService, startQuery } from '../../testing/query-service.ts';
import { DOCUMENT_FIELDS } from './event-columns.ts';

let query: QueryService;

beforeAll(async () => {
  query = await startQuery(inject('clickhouseUrl'));
});
afterAll(() => query.stop());

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
  await expectSameAsReference(query, documents, [
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
  await expectSameAsReference(query, documents, [...compared, ...searched].filter(isValid));
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
  for (const column of DOCUMENT_FIELDS) await expectSameAsReference(query, documents, filters, column);
  // The other operators look at the array itself.
  const others = (['prefix', 'contains', 'gte'] as const).map((operator): Filter => {
    return { name: 'tags', condition: { operator, value: 'red' } };
  });
  await expectSameAsReference(query, documents, others);
});

test('an object at the greatest depth is found, and reached into', async () => {
  const deep = (levels: number): unknown => (levels === 0 ? 'end' : { a: deep(levels - 1) });
  await expectSameAsReference(
    query,
    [deep(32), deep(3), { 'a.a': { a: 'end' } }, { a: [{ a: 'end' }] }],
    [equals('a.a.a', 'end'), equals('a', JSON.stringify(deep(31))), equals('a.a', JSON.stringify(deep(30)))],
  );
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
