import type { ClickHouseClient } from '@sluice/shared/clickhouse/client';

/** Returns the column `number` of the first row of a query; 0 without a row. @throws ClickHouse's errors */
export async function readNumber(
  client: ClickHouseClient,
  query: string,
  query_params: Readonly<Record<string, unknown>> = {},
): Promise<number> {
  const result = await client.query({ query, query_params, format: 'JSONEachRow' });
  const [row] = await result.json<{ number: number }>();
  return row?.number ?? 0;
}
