import { type ClickHouseClient, createClickHouse } from '@sluice/shared/clickhouse/client';
import { mergeParts } from '@sluice/shared/clickhouse/testing/merge-parts';
import { type TestDatabase, takeDatabase } from '@sluice/shared/clickhouse/testing/test-database';
import { loadConfig } from '@sluice/shared/config';
import { afterAll, beforeAll, expect, inject } from 'vitest';
import { configSchema, type QueryConfig } from '../config.ts';
import { type EntitiesPage, readPage } from '../records/entities/entities-reader.ts';
import { readSeenPage, type SeenPage } from '../records/entities/seen-reader.ts';
import type { Condition } from '../records/filters/operators.ts';
import type { PropertyFilter } from '../records/filters/property-filter.ts';
import type { Query } from '../store/query.ts';
import { querySettings } from '../store/query-settings.ts';
import { RequestQueries } from '../store/request-queries.ts';
import { LOCAL_TABLES } from '../store/tables.ts';
import { TimeBudget } from '../store/time-budget.ts';

// What reads of users read of eight times as many, as ClickHouse counts it.

export const USERS = 5_000;
export const LIMIT = 5;
const workspaces = { small: USERS, large: 8 * USERS };
export type Workspace = keyof typeof workspaces | 'returned';

/** Every user of the workspace `returned` was deleted and came back. */
const DELETED_VERSION = 7;

let database: TestDatabase;
let config: QueryConfig;
let client: ClickHouseClient;

/** Before the tests of a file, stores users of each workspace. */
export function prepareUsers(): void {
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
}

export interface Cost {
  rows: number;
  bytes: number;
  results: number;
}

/** Runs queries as the service does, and adds up what ClickHouse read for them. */
export function counted(workspace: Workspace, cost: Cost): RequestQueries {
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

export async function pageCost(
  workspace: Workspace,
  page: Omit<EntitiesPage, 'kind' | 'segments' | 'rowsMax'>,
): Promise<Cost> {
  const cost = { rows: 0, bytes: 0, results: 0 };
  const entities = readPage(counted(workspace, cost), { kind: 'user', segments: [], rowsMax: LIMIT + 1, ...page });
  for await (const _ of entities) cost.results += 1;
  return cost;
}

export const having = (name: string, condition: Condition): PropertyFilter => ({
  document: 'properties',
  name,
  condition,
});
export const plan = (value: string) => having('plan', { operator: 'eq', value });
export const country = (value: string) => having('country', { operator: 'eq', value });

/** A page by time: in which order, and whether it begins at one end or in the middle. */
export type SeenCase = readonly [
  field: 'firstSeenAt' | 'lastSeenAt',
  direction: 'ASC' | 'DESC',
  begins: 'first' | 'amid',
];

/** Expects that a page by time reads as much of eight times as many users. */
export async function expectSameSeenCost(
  properties: readonly PropertyFilter[],
  [field, direction, begins]: SeenCase,
): Promise<void> {
  const middleMs = field === 'firstSeenAt' ? 1_500 : 2_500;
  const seenMs = begins === 'first' ? undefined : middleMs;
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

/** Expects that pages of users, at the start and in the middle, in both directions, read as much of eight times as many. */
export async function expectSamePageCost(filters: readonly PropertyFilter[]): Promise<void> {
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
}
