import { expect, test } from 'vitest';
import {
  counted,
  country,
  expectSamePageCost,
  expectSameSeenCost,
  having,
  LIMIT,
  plan,
  prepareUsers,
  USERS,
  type Workspace,
} from '../../testing/grown-users.ts';
import type { PropertyFilter } from '../filters/property-filter.ts';
import { readEntity } from './entities-reader.ts';
import { readMemberships } from './memberships-reader.ts';
import { searchNames } from './names-reader.ts';
import { NAMING_DEFAULT } from './naming.ts';
import { readSeenPage, type SeenPage } from './seen-reader.ts';

prepareUsers();

// The night has more filters.
test.each<[string, readonly PropertyFilter[]]>([
  ['no filter', []],
  ['a rare value', [plan('rare')]],
  ['an absent property', [having('colour', { operator: 'contains', value: 'red' })]],
  ['all but one value', [having('plan', { operator: 'ne', value: 'pro' })]],
  ['a common value and an absent one', [country('c6'), plan('none')]],
])('a page of users with %s reads as much of eight times as many, at its start and in the middle', (_, filters) =>
  expectSamePageCost(filters),
);

test.each([
  ['organization', 'all'],
  ['user', '000000007'],
] as const)(
  'a page of the memberships of one %s reads as much of eight times as many, at its start and in the middle',
  async (kind, id) => {
    const costOf = async (workspace: Workspace, after: string) => {
      const cost = { rows: 0, bytes: 0, results: 0 };
      const memberships = readMemberships(counted(workspace, cost), { kind, id, after, rowsMax: LIMIT + 1 });
      for await (const _ of memberships) cost.results += 1;
      return cost;
    };
    for (const part of [0, 0.5]) {
      const after = (users: number) => (part === 0 ? '' : String(users * part).padStart(9, '0'));
      const small = await costOf('small', after(USERS));
      const large = await costOf('large', after(8 * USERS));
      expect(large.results).toBe(LIMIT + 1);
      expect(large.rows, JSON.stringify({ small, large })).toBeLessThanOrEqual(small.rows + 256);
      expect(large.bytes, JSON.stringify({ small, large })).toBeLessThanOrEqual(1.5 * small.bytes + 16_384);
      expect(small.rows).toBeLessThan(2_000);
    }
  },
);

test.each<[string, readonly PropertyFilter[]]>([
  ['no filter', []],
  ['a rare value', [plan('rare')]],
])('a page by time of users with %s reads as much of eight times as many', async (_, properties) => {
  // The night has every order, at both ends and in the middle.
  await expectSameSeenCost(properties, ['firstSeenAt', 'ASC', 'first']);
  await expectSameSeenCost(properties, ['lastSeenAt', 'DESC', 'amid']);
});

test('a page by time of users who all came back after a deletion reads what one of others does', async () => {
  for (const field of ['firstSeenAt', 'lastSeenAt'] as const) {
    for (const direction of ['ASC', 'DESC'] as const) {
      const costOf = async (workspace: Workspace) => {
        const cost = { rows: 0, bytes: 0, results: 0 };
        const order = { field, direction };
        const page: SeenPage = {
          kind: 'user',
          order,
          segments: [],
          properties: [],
          rowsMax: LIMIT + 1,
          after: undefined,
        };
        for await (const _ of readSeenPage(counted(workspace, cost), page)) cost.results += 1;
        return cost;
      };
      const [others, returned] = [await costOf('large'), await costOf('returned')];
      expect(returned.results).toBe(others.results);
      // The deletion of each is looked up, and found. Candidates lie in different granules, of which few users have few.
      expect(returned.rows, JSON.stringify({ others, returned })).toBeLessThanOrEqual(2 * others.rows + 4_096);
    }
  }
});

test('one user reads as much of eight times as many', async () => {
  const costOf = async (workspace: Workspace) => {
    const cost = { rows: 0, bytes: 0, results: 0 };
    expect(await readEntity(counted(workspace, cost), 'user', '000001234')).toMatchObject({ id: '000001234' });
    return cost;
  };
  const [small, large] = [await costOf('small'), await costOf('large')];
  expect(large.rows).toBeLessThanOrEqual(small.rows + 256);
  expect(small.rows).toBeLessThan(2_000);
});

test.each([
  ['the last name', (users: number) => `user ${users - 1}`, 1],
  ['a name that nobody has', () => 'nobody at all', 0],
  ['an identifier', (users: number) => String(users - 1).padStart(9, '0'), 1],
  ['the beginning of every identifier', () => '0000', LIMIT],
] as const)('a search for %s reads as much of eight times as many', async (_, textOf, results) => {
  const costOf = async (workspace: Workspace, users: number) => {
    const cost = { rows: 0, bytes: 0, results: 0 };
    const search = { text: textOf(users), naming: NAMING_DEFAULT, limit: LIMIT };
    const { found, isComplete } = await searchNames(counted(workspace, cost), 'user', search, USERS / 2);
    expect([found.length, isComplete]).toEqual([results, false]);
    return cost;
  };
  const [small, large] = [await costOf('small', USERS), await costOf('large', 8 * USERS)];
  expect(large.rows, JSON.stringify({ small, large })).toBeLessThanOrEqual(1.2 * small.rows + 1_024);
  expect(large.bytes, JSON.stringify({ small, large })).toBeLessThanOrEqual(1.2 * small.bytes + 65_536);
});
