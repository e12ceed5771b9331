import { expect, test } from 'vitest';
import { conditionsFor, conditionsOf, type Definition, filtersOf, textOfSegment } from './definition.ts';

const FILTERS = { 'properties.plan[in]': 'pro,team', 'properties.a[0]': 'x', 'lastSeenAt[gte]': '2026-03-01' };

test.each(['users', 'organizations'] as const)('a form keeps the filters of a segment of %s', (of) => {
  const conditions = conditionsOf({ of, filters: FILTERS });
  expect(filtersOf(of, conditions)).toEqual(FILTERS);
  // As the property of an event is typed, since no segment has any of events.
  expect(filtersOf(of, [{ name: 'properties.plan', operator: 'eq', value: 'pro' }])).toEqual({
    'properties.plan': 'pro',
  });
});

test('filters go over to a segment of the others', () => {
  const others = conditionsFor('organizations', conditionsOf({ of: 'users', filters: FILTERS }));
  expect(filtersOf('organizations', others)).toEqual(FILTERS);
});

test('no filter is lost beside another one of the same name', () => {
  const plan = { name: 'user.properties.plan', operator: 'eq', value: 'pro' };
  expect(() => filtersOf('users', [plan, { ...plan, value: 'free' }])).toThrow('Two filters are on properties.plan');
});

test.each<[Definition, string]>([
  [{ of: 'organizations', filters: { 'properties.plan': 'pro' }, behaviour: [] }, 'Organization: plan is pro'],
  [
    {
      of: 'users',
      filters: { 'firstSeenAt[gte]': '2026-03-01' },
      behaviour: [
        { did: 'paid', times: 1 },
        { did: 'ran', times: 3, days: 1 },
      ],
    },
    'User: first seen since 2026-03-01, did “paid”, did “ran” at least 3 times within 1 day',
  ],
  [{ of: 'users', filters: {}, behaviour: [{ did: 'ran', times: 0, days: 14 }] }, 'did not do “ran” within 14 days'],
  [{ of: 'users', filters: {}, behaviour: [{ did: 'ran', times: 0 }] }, 'never did “ran”'],
])('%j is read as a person says it', (definition, text) => {
  expect(textOfSegment(definition)).toBe(text);
});
