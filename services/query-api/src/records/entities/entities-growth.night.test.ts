import { test } from 'vitest';
import {
  country,
  expectSamePageCost,
  expectSameSeenCost,
  having,
  plan,
  prepareUsers,
} from '../../testing/grown-users.ts';
import type { PropertyFilter } from '../filters/property-filter.ts';

prepareUsers();

test.each<[string, readonly PropertyFilter[]]>([
  ['no filter', []],
  ['a common value', [plan('free')]],
  ['one in 40', [country('c7')]],
  ['a rare value', [plan('rare')]],
  ['an absent value', [plan('none')]],
  ['an absent property', [having('colour', { operator: 'contains', value: 'red' })]],
  ['a nested value', [having('seats.used', { operator: 'eq', value: '7' })]],
  ['one of several values', [having('plan', { operator: 'in', value: ['rare', 'none'] })]],
  ['a prefix that many have', [having('country', { operator: 'prefix', value: 'c1' })]],
  ['a number that many exceed', [having('seats.used', { operator: 'gte', value: 30 })]],
  ['a property that all have', [having('plan', { operator: 'exists', value: true })]],
  ['all but one value', [having('plan', { operator: 'ne', value: 'pro' })]],
  ['a property that nobody has', [having('colour', { operator: 'exists', value: false })]],
  ['two values, both common', [plan('free'), country('c6')]],
  ['a common value and a rare one', [plan('rare'), having('plan', { operator: 'exists', value: true })]],
  ['a common value and an absent one', [country('c6'), plan('none')]],
])('a page of users with %s reads as much of eight times as many, at its start and in the middle', (_, filters) =>
  expectSamePageCost(filters),
);

test.each<[string, readonly PropertyFilter[]]>([
  ['no filter', []],
  ['a common value', [plan('free')]],
  ['a rare value', [plan('rare')]],
  ['an absent value', [plan('none')]],
])(
  'a page by time of users with %s reads as much of eight times as many, at both ends and in the middle',
  async (_, properties) => {
    for (const field of ['firstSeenAt', 'lastSeenAt'] as const) {
      for (const direction of ['ASC', 'DESC'] as const) {
        for (const begins of ['first', 'amid'] as const) {
          await expectSameSeenCost(properties, [field, direction, begins]);
        }
      }
    }
  },
);
