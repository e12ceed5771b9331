import { type ClickHouseClient, createClickHouse } from '@sluice/shared/clickhouse/client';
import { mergeParts } from '@sluice/shared/clickhouse/testing/merge-parts';
import { type TestDatabase, takeDatabase } from '@sluice/shared/clickhouse/testing/test-database';
import { loadConfig } from '@sluice/shared/config';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { configSchema, type QueryConfig } from '../../config.ts';
import type { Query } from '../../store/query.ts';
import { querySettings } from '../../store/query-settings.ts';
import { RequestQueries } from '../../store/request-queries.ts';
import { LOCAL_TABLES } from '../../store/tables.ts';
import { TimeBudget } from '../../store/time-budget.ts';
import type { Condition } from '../filters/operators.ts';
import type { PropertyFilter } from '../filters/property-filter.ts';
import { type EntitiesPage, readEntity, readPage } from './entities-reader.ts';
import { readMemberships } from './memberships-reader.ts';
import { searchNames } from './names-reader.ts';
import { NAMING_DEFAULT } from './naming.ts';
import { readSeenPage, type SeenPage } from './seen-reader.ts';

// What a page reads of eight times as many users, as ClickHouse counts it.

const USERS = 5_000;
const LIMIT = 5;
const workspaces = { small: USERS, large: 8 * USERS };
type Workspace = keyof typeof workspaces | 'returned';

/** Every user of the workspace `returned` was deleted and came back. */
const DELETED_VERSION = 7;

let database: TestDatabase;
let config: QueryConfig;
let client: ClickHouseClient;

beforeAll(async () => {
  database = await takeDatabase(inject('clickhouseUrl'));
  config = loadConfig(configSchema, { ...database.config, QUERY_ANONYMOUS_WORKSPACE: 'small' });
  client = createClickHouse(config, { application: 'growth', requestTimeoutMs: 15_000, connectionsMax: 2 });
  for (const [workspace, users] of Object.entries(workspaces)) {
    // Half the users have the plan `free`; ten have `rare`, wherever they lie; each has a name of its own.
    await client.command({
      query: `INSERT INTO entity_properties (workspace_id, kind, id, property, register)
        SELECT {workspace:String}, 'user', leftPad(toString(number), 9, '0'), entry.1,
          (number + 1, '0190a0a0-0000-7000-8000-000000000001', 'set', entry.2)
        FROM (
          SELECT number, arrayJoin([
            ('plan', multiIf(number % {tenth:UInt32} = 7, '"rare"', number % 2 = 0, '"free"', '"pro"')),
            ('name', concat('"user ', toString(number), '"')),
            ('seats', concat('{"used":', toString(number % 50), '}')),
            ('country', concat('"c', toString(number % 40), '"'))
          ]) AS entry
          FROM numbers({users:UInt32})
        )`,
      query_params: { workspace, users, tenth: users / 10 },
    });
    await client.command({
      query: `INSERT INTO entities
        SELECT {workspace:String}, 'user', leftPad(toString(number), 9, '0'), 1000 + cityHash64(number) % 1000,
          2000 + cityHash64(number) % 1000, number + 1, ''
        FROM numbers({users:UInt32})`,
      query_params: { workspace, users },
    });
    // All users belong to one organization, and one user to as many organizations.
    for (const [kind, id] of [
      ['member', 'all'],
      ['membership', '000000007'],
    ]) {
      await client.command({
        query: `INSERT INTO entities
          SELECT {workspace:String}, {kind:String}, {id:String}, 1000, 2000, number + 1, leftPad(toString(number), 9, '0')
          FROM numbers({users:UInt32})`,
        query_params: { workspace, users, kind, id },
      });
    }
    // Past deletions of users who are gone.
    await client.command({
      query: `INSERT INTO user_deletions
        SELECT {workspace:String}, leftPad(concat(toString(number), 'x'), 9, '0'), 1 FROM numbers({users:UInt32})`,
      query_params: { workspace, users },
    });
  }
  await client.command({
    query: `INSERT INTO entities
      SELECT 'returned', kind, id, first_seen_at, last_seen_at, version + {deleted:UInt64}, toString({deleted:UInt64})
      FROM entities WHERE workspace_id = 'large' AND kind = 'user'`,
    query_params: { deleted: DELETED_VERSION },
  });
  await client.command({
    query: `INSERT INTO user_deletions (workspace_id, user_id, version)
      SELECT workspace_id, id, {deleted:UInt64} FROM entities WHERE workspace_id = 'returned'`,
    query_params: { deleted: DELETED_VERSION },
  });
  for (const table of ['entities', 'entity_properties', 'user_deletions']) await mergeParts(client, table);
});
afterAll(async () => {
  await client.close();
  await database.release();
});

interface Cost {
  rows: number;
  bytes: number;
  results: number;
}

/** Runs queries as the service does, and adds up what ClickHouse read for them. */
function counted(workspace: Workspace, cost: Cost): RequestQueries {
  const all = async ({ settings, ...query }: Query) => {
    const { sql, params } = 'hiding' in query ? query.hiding(LOCAL_TABLES, undefined) : query.statement(LOCAL_TABLES);
    const result = await client.query({
      query: sql,
      query_params: { ...params, workspace },
      format: 'JSONCompactEachRow',
      clickhouse_settings: { ...querySettings(config), ...settings, wait_end_of_query: 1 },
    });
    const rows = await result.json<unknown[]>();
    const summary = JSON.parse(String(result.response_headers['x-clickhouse-summary'])) as Record<string, string>;
    cost.rows += Number(summary['read_rows']);
    cost.bytes += Number(summary['read_bytes']);
    return rows;
  };
  return new RequestQueries({ all }, { workspace }, new TimeBudget(60_000));
}

async function pageCost(
  workspace: Workspace,
  page: Omit<EntitiesPage, 'kind' | 'segments' | 'rowsMax'>,
): Promise<Cost> {
  const cost = { rows: 0, bytes: 0, results: 0 };
  const entities = readPage(counted(workspace, cost), { kind: 'user', segments: [], rowsMax: LIMIT + 1, ...page });
  for await (const _ of entities) cost.results += 1;
  return cost;
}

const having = (name: string, condition: Condition): PropertyFilter => ({ document: 'properties', name, condition });
const plan = (value: string) => having('plan', { operator: 'eq', value });
const country = (value: string) => having('country', { operator: 'eq', value });

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
])(
  'a page of users with %s reads as much of eight times as many, at its start and in the middle',
  async (_, filters) => {
    for (const [part, direction] of [
      [0, 'ASC'],
      [0.5, 'ASC'],
      [0, 'DESC'],
      [0.5, 'DESC'],
    ] as const) {
      const after = (users: number) => (part === 0 ? undefined : String(users * part).padStart(9, '0'));
      const page = { direction, properties: filters };
      const small = await pageCost('small', { ...page, after: after(USERS) });
      const large = await pageCost('large', { ...page, after: after(8 * USERS) });
      expect(large.results).toBe(small.results);
      expect(large.rows, JSON.stringify({ small, large })).toBeLessThanOrEqual(1.5 * small.rows + 256);
      expect(large.bytes, JSON.stringify({ small, large })).toBeLessThanOrEqual(1.5 * small.bytes + 16_384);
    }
  },
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

test.each([
  ['no filter', []],
  ['a common value', [plan('free')]],
  ['a rare value', [plan('rare')]],
  ['an absent value', [plan('none')]],
])(
  'a page by time of users with %s reads as much of eight times as many, at both ends and in the middle',
  async (_, properties) => {
    for (const field of ['firstSeenAt', 'lastSeenAt'] as const) {
      for (const direction of ['ASC', 'DESC'] as const) {
        for (const seenMs of [undefined, field === 'firstSeenAt' ? 1_500 : 2_500]) {
          const costOf = async (workspace: Workspace) => {
            const cost = { rows: 0, bytes: 0, results: 0 };
            const page: SeenPage = {
              kind: 'user',
              order: { field, direction },
              segments: [],
              properties,
              rowsMax: LIMIT + 1,
              after: seenMs === undefined ? undefined : { id: '', seenMs },
            };
            for await (const _ of readSeenPage(counted(workspace, cost), page)) cost.results += 1;
            return cost;
          };
          const [small, large] = [await costOf('small'), await costOf('large')];
          expect(large.results).toBe(small.results);
          // Candidates lie in different granules, of which few users have few.
          expect(large.rows, JSON.stringify({ small, large })).toBeLessThanOrEqual(2 * small.rows + 4_096);
        }
      }
    }
  },
);

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
