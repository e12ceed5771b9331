import { expect, test } from 'vitest';
import { CHART_FIELDS } from './fields.ts';

test('a suggested group is one key, also with commas and backslashes in its name', () => {
  const paths = ['properties.plan', 'properties.price, net', String.raw`properties.a\b`];
  const properties = paths.map((path) => ({ path, types: ['string' as const], share: 1, lastSeenAt: '' }));
  const suggested = CHART_FIELDS.find(({ name }) => name === 'groupBy')?.suggestions?.({ events: [], properties });
  expect(suggested?.slice(-3)).toEqual([
    'properties.plan',
    String.raw`properties.price\, net`,
    String.raw`properties.a\\b`,
  ]);
});
