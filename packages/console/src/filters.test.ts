import { expect, test } from 'vitest';
import { filterParams, parseFilters } from './filters.ts';

const NAMES = ['event', 'userId', 'groupId', 'startDate'];

test.each([
  'event=signed_up&userId=jane&properties.plan=pro&limit=10',
  'properties.amount%5Bgte%5D=10&properties.a%5B0%5D%5Bin%5D=x%2Cy',
  'properties.a%5Blt%5D%5Beq%5D=x',
  'event%5Bprefix%5D=sign&userId%5Bexists%5D=false',
  'startDate=2026-01-01&orderByDirection=ASC&total=none',
])('the form keeps %s as it is', (query) => {
  expect(filterParams(parseFilters(new URLSearchParams(query), NAMES)).toString()).toBe(query);
});

test('a name in brackets that is no word belongs to the property', () => {
  const { conditions } = parseFilters(new URLSearchParams({ 'properties.a[0]': 'x', 'properties.b[lt]': '3' }), []);
  expect(conditions).toEqual([
    { name: 'properties.a[0]', operator: 'eq', value: 'x' },
    { name: 'properties.b', operator: 'lt', value: '3' },
  ]);
});

test('empty fields and the cursor of the old filters are left out', () => {
  const filters = parseFilters(new URLSearchParams({ event: ' ', cursor: 'c', groupId: ' acme ' }), NAMES);
  expect(filterParams(filters).toString()).toBe('groupId=acme');
});
