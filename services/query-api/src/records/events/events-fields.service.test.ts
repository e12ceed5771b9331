import fc from '@sluice/shared/testing/fast-check';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { conditionsFor, textOf } from '../../testing/conditions.ts';
import { anEvent, eachIdentifier, type QueryService, startQuery, type TestEvent } from '../../testing/query-service.ts';
import { fieldMeets } from '../../testing/reference.ts';
import type { Condition } from '../filters/operators.ts';
import { FILTER_FIELDS, type FilterField } from './event-columns.ts';
import { eventFilterable } from './event-selection.ts';

let query: QueryService;

beforeAll(async () => {
  query = await startQuery(inject('clickhouseUrl'));
});
afterAll(() => query.stop());

const text = fc.oneof(
  fc.constantFrom('a', 'B', 'ab', 'ä', '\u{1f600}', '\ufffd', '\\N', "'", '\0', '10', '9', '"10"', ',', '\\', '%', '_'),
  fc.string({ unit: 'grapheme', minLength: 1, maxLength: 5 }),
);
const identifier = fc.oneof(fc.constant(''), text);
const event: fc.Arbitrary<TestEvent> = fc
  .record({
    uuid: fc.uuid(),
    event: text,
    type: fc.constantFrom('track', 'a', 'ab'),
    ...eachIdentifier(identifier),
  })
  .map(anEvent);

interface Filter {
  readonly field: FilterField;
  readonly condition: Condition;
}

/** Whether a request can have the filter: its field has the operator, and its value is not empty. */
function isValid({ field, condition }: Filter): boolean {
  const { operators } = eventFilterable.fields[field];
  if (field === 'uuid' && condition.operator === 'in' && condition.value.includes('')) return false;
  return operators.includes(condition.operator) && textOf(condition, false) !== '';
}

test('every operator of every field finds what the contract says it should, and nothing else', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.uniqueArray(event, { minLength: 1, maxLength: 15, selector: ({ uuid }) => uuid }),
      fc.infiniteStream(fc.tuple(fc.nat(), fc.nat(), fc.constantFrom(...FILTER_FIELDS))),
      fc.gen(),
      async (events, choices, generate) => {
        await query.clickHouse.command({ query: 'TRUNCATE TABLE events' });
        await query.store('a', events);
        const filters = [...choices.take(15)].map(([choice, otherChoice, field]): Filter => {
          const [one, other] = [choice, otherChoice].map((index) => events[index % events.length]?.[field] ?? '');
          return { field, condition: generate(() => conditionsFor(one, other)) };
        });
        for (const { field, condition } of filters.filter(isValid)) {
          const parameters = new URLSearchParams({ [`${field}[${condition.operator}]`]: textOf(condition, false) });
          const { status, body } = await query.get(`/events?limit=1000&total=none&${parameters}`);
          expect(status, `${parameters}: ${JSON.stringify(body)}`).toBe(200);
          const expected = events.filter((stored) => fieldMeets(stored[field], condition));
          expect(body.results.map(({ uuid }) => uuid).sort(), String(parameters)).toEqual(
            expected.map(({ uuid }) => uuid).sort(),
          );
        }
      },
    ),
    { numRuns: 8 },
  );
});

test.each([
  ['userId=ada', '1'],
  ['userId[eq]=ada', '1'],
  ['userId[eq]=', '34'],
  ['userId[ne]=', '12'],
  ['userId[ne]=ada', '234'],
  ['userId[in]=ada,b\\,c', '12'],
  ['userId[in]=ada,', '134'],
  ['userId[exists]=true', '12'],
  ['userId[exists]=false', '34'],
  ['userId[lt]=b', '1'],
  ['userId[gte]=b', '2'],
  ['userId[gt]=a&userId[lte]=ada', '1'],
  ['userId[lt]="z"', ''],
  ['event[prefix]=invoice_', '12'],
  ['event[contains]=voi&event[ne]=invoice_paid', '2'],
  ['event[contains]=%25', '3'],
  ['uuid[in]=0190A0A0-0000-7000-8000-000000000003,0190a0a0-0000-7000-8000-000000000001', '13'],
  ['uuid[ne]=0190A0A0-0000-7000-8000-000000000003', '124'],
  ['uuid[eq]=0190A0A0-0000-7000-8000-000000000003', '3'],
])('?%s finds %s', async (parameters, expected) => {
  const uuid = (number: number) => `0190a0a0-0000-7000-8000-00000000000${number}`;
  await query.clickHouse.command({ query: 'TRUNCATE TABLE events' });
  await query.store('a', [
    anEvent({ uuid: uuid(1), userId: 'ada', event: 'invoice_paid' }),
    anEvent({ uuid: uuid(2), userId: 'b,c', event: 'invoice_sent' }),
    anEvent({ uuid: uuid(3), event: '100%' }),
    anEvent({ uuid: uuid(4) }),
  ]);
  const { status, body } = await query.get(`/events?orderByField=uuid&orderByDirection=ASC&${parameters}`);
  expect(status, JSON.stringify(body)).toBe(200);
  expect(body.results.map(({ uuid: found }) => String(found).at(-1)).join('')).toBe(expected);
});
