import type { ClickHouseClient } from '@sluice/shared/clickhouse/client';
import { loadConfig } from '@sluice/shared/config';
import { querySettings, timeLimit } from '../services/query-api/src/clickhouse/query-settings.ts';
import { LOCAL_TABLES } from '../services/query-api/src/clickhouse/tables.ts';
import { configSchema } from '../services/query-api/src/config.ts';
import { parseEventsRequest } from '../services/query-api/src/events/events-parameters.ts';
import { pageQuery } from '../services/query-api/src/events/events-query.ts';
import { WORKSPACES } from './traffic.ts';

/** Longer than any query takes, so that slow queries show their time, in milliseconds. */
export const TIMEOUT_MS = 120_000;

/** The default budgets of query-api. */
export const CONFIG = loadConfig(configSchema, {
  CLICKHOUSE_URL: 'http://localhost',
  QUERY_ANONYMOUS_WORKSPACE: WORKSPACES[0],
});

/** The workspace of the queries: the one with most of the events. */
export const WORKSPACE = WORKSPACES[0];

/** A filter of `GET /events`, and its name in the table of figures. */
export interface FilterQuery {
  readonly name: string;
  readonly parameters: Readonly<Record<string, string>>;
}

export const NEWEST: FilterQuery = { name: 'newest page', parameters: {} };

/**
 * One query for each filter, with values that many, few and no events of a workspace have. The values are looked up in
 * the stored events.
 */
export async function filterQueries(client: ClickHouseClient, workspace: string): Promise<readonly FilterQuery[]> {
  const read = <Row>(query: string) => readRows<Row>(client, query, { workspace });
  const user = (events: number) => identifierWith(client, workspace, 'user_id', events);
  const organization = (events: number) => identifierWith(client, workspace, 'group_id', events);
  const anonymous = await identifierWith(client, workspace, 'anonymous_id', 100);
  const instance = await identifierWith(client, workspace, 'instance_id', 100);
  // An event in the middle of the table: this order has nothing to do with time.
  const [some] = await read<{ uuid: string; requestId: string }>(
    `SELECT toString(uuid) AS uuid, JSONExtractString(properties, 'requestId') AS requestId
     FROM events WHERE workspace_id = {workspace:String} ORDER BY instance_id DESC, cityHash64(uuid) LIMIT 1`,
  );
  return [
    { name: 'user, many', parameters: { userId: 'user-0' } },
    { name: 'user, 160', parameters: { userId: await user(160) } },
    { name: 'user, 6', parameters: { userId: await user(6) } },
    { name: 'user, none', parameters: { userId: 'nobody' } },
    { name: 'organization, many', parameters: { groupId: 'org-0' } },
    { name: 'organization, 160', parameters: { groupId: await organization(160) } },
    { name: 'organization, 40', parameters: { groupId: await organization(40) } },
    { name: 'organization, none', parameters: { groupId: 'nobody' } },
    { name: 'anonymous id, 100', parameters: { anonymousId: anonymous } },
    { name: 'instance id, 100', parameters: { instanceId: instance } },
    { name: 'event name, most', parameters: { event: 'page_viewed' } },
    { name: 'event name, least', parameters: { event: 'sso_enabled' } },
    { name: 'event name, none', parameters: { event: 'nothing_happened' } },
    { name: 'uuid', parameters: { uuid: some?.uuid ?? '' } },
    { name: 'uuid, none', parameters: { uuid: '00000000-0000-7000-8000-000000000000' } },
    { name: 'property, common', parameters: { 'properties.plan': 'team' } },
    { name: 'property, 1 of 500', parameters: { 'properties.seats': '77' } },
    { name: 'property, some 150', parameters: { 'properties.path': '/teams/5000/members' } },
    { name: 'property, one', parameters: { 'properties.requestId': some?.requestId ?? '' } },
    { name: 'property, absent', parameters: { 'properties.plan': 'nothing' } },
    { name: 'nested property', parameters: { 'properties.device.os': 'Linux' } },
  ];
}

/** Returns the identifier of a workspace that has about this many events. */
export async function identifierWith(
  client: ClickHouseClient,
  workspace: string,
  column: string,
  events: number,
): Promise<string> {
  const [found] = await readRows<{ id: string }>(
    client,
    `SELECT {column:Identifier} AS id FROM events WHERE workspace_id = {workspace:String} AND id != ''
     GROUP BY id ORDER BY abs(toInt64(count()) - {events:Int64}), id LIMIT 1`,
    { workspace, column, events },
  );
  return found?.id ?? '';
}

export async function readRows<Row>(
  client: ClickHouseClient,
  query: string,
  query_params: Record<string, unknown> = {},
): Promise<Row[]> {
  return await (await client.query({ query, query_params, format: 'JSONEachRow' })).json<Row>();
}

interface Direct {
  readonly ms: number;
  readonly bytes: number;
}

/** Sends the SQL of a page to ClickHouse, with the settings of query-api. */
export async function queryDirectly(client: ClickHouseClient, { parameters }: FilterQuery): Promise<Direct> {
  const listed = Object.fromEntries(Object.entries(parameters).map(([name, value]) => [name, [value]]));
  const { sql, params } = pageQuery(LOCAL_TABLES, parseEventsRequest(listed, WORKSPACE), undefined);
  const startedAt = performance.now();
  const result = await client.query({
    query: sql,
    query_params: { ...params, workspace: WORKSPACE },
    format: 'JSONCompactEachRow',
    clickhouse_settings: { ...querySettings(CONFIG), ...timeLimit(TIMEOUT_MS) },
  });
  await result.text();
  const ms = performance.now() - startedAt;
  const summary = JSON.parse(String(result.response_headers['x-clickhouse-summary'] ?? '{}'));
  return { ms, bytes: Number(summary.read_bytes) };
}
