import type { ClickHouseClient } from '@sluice/shared/clickhouse/client';
import { loadConfig } from '@sluice/shared/config';
import { configSchema } from '../../services/query-api/src/config.ts';
import { parseEventsRequest } from '../../services/query-api/src/records/events/events-parameters.ts';
import { pageQuery } from '../../services/query-api/src/records/events/events-query.ts';
import { querySettings, timeLimit } from '../../services/query-api/src/store/query-settings.ts';
import { LOCAL_TABLES } from '../../services/query-api/src/store/tables.ts';
import { type FilterQuery, WORKSPACE } from '../data/filter-queries.ts';
import { QUERY_TIMEOUT_MS } from '../processes/query-api.ts';

/** The default budgets of query-api. */
const CONFIG = loadConfig(configSchema, {
  CLICKHOUSE_URL: 'http://localhost',
  QUERY_ANONYMOUS_WORKSPACE: WORKSPACE,
});

/** Sends the SQL of a page to ClickHouse, with the settings of query-api. Returns how long it took, in milliseconds. */
export async function queryPageDirectly(client: ClickHouseClient, { parameters }: FilterQuery): Promise<number> {
  const listed = Object.fromEntries(Object.entries(parameters).map(([name, value]) => [name, [value]]));
  const { sql, params } = pageQuery(LOCAL_TABLES, parseEventsRequest(listed, WORKSPACE), undefined);
  return await timeQuery(client, sql, { ...params, workspace: WORKSPACE }, timeLimit(QUERY_TIMEOUT_MS));
}

/** Sends SQL that was written by hand, likewise. It binds `workspace`, and what `params` has. */
export async function queryByHand(
  client: ClickHouseClient,
  sql: string,
  params: Readonly<Record<string, unknown>>,
): Promise<number> {
  return await timeQuery(client, sql, { ...params, workspace: WORKSPACE }, { optimize_aggregation_in_order: 0 });
}

async function timeQuery(
  client: ClickHouseClient,
  query: string,
  query_params: Record<string, unknown>,
  settings: ReturnType<typeof timeLimit> | { readonly optimize_aggregation_in_order: 0 },
): Promise<number> {
  const startedAt = performance.now();
  const result = await client.query({
    query,
    query_params,
    format: 'JSONCompactEachRow',
    clickhouse_settings: { ...querySettings(CONFIG), ...settings },
  });
  await result.text();
  return performance.now() - startedAt;
}
