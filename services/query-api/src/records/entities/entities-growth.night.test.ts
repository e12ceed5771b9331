import { test } from 'vitest';
import { expectSameSeenCost, plan, prepareUsers } from '../../testing/grown-users.ts';
import type { PropertyFilter } from '../filters/property-filter.ts';

prepareUsers();

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
