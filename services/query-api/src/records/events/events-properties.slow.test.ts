import fc from '@sluice/shared/testing/fast-check';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { asText, conditionsFor } from '../../testing/conditions.ts';
import {
  document,
  equals,
  expectSameAsReference,
  type Filter,
  find,
  isValid,
  key,
  places,
  string,
  value,
} from '../../testing/property-filters.ts';
import { anEvent, type QueryService, startQuery } from '../../testing/query-service.ts';
import { DOCUMENT_FIELDS } from './event-columns.ts';

let query: QueryService;

beforeAll(async () => {
  query = await startQuery(inject('clickhouseUrl'));
});
afterAll(() => query.stop());

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
        await expectSameAsReference(query, documents, [...known, ...further].filter(isValid));
      },
    ),
    { numRuns: 8 },
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
        await expectSameAsReference(query, documents, filters.filter(isValid), column);
      },
    ),
    { numRuns: 8 },
  );
});

test('a filter looks into one of the three documents of an event', async () => {
  await query.clickHouse.command({ query: 'TRUNCATE TABLE events' });
  const stored = DOCUMENT_FIELDS.map((column) => ({ column, event: anEvent({ [column]: '{"a":1}' }) }));
  await query.store(
    'a',
    stored.map(({ event }) => event),
  );
  for (const { column, event } of stored) expect(await find(query, [[`${column}.a`, '1']])).toEqual([event.uuid]);
  expect(
    await find(query, [
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
    await find(query, [
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
