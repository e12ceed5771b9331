import { text } from 'node:stream/consumers';
import { type ClickHouseClient, createClickHouse } from '@sluice/shared/clickhouse/client';
import { PINNED_SETTINGS } from '@sluice/shared/clickhouse/settings';
import type { ClickHouseConfig } from '@sluice/shared/config';

/** How long a statement may take, in milliseconds. A check ends it before. */
export const REQUEST_MS_MAX = 30_000;

/** Settings of ClickHouse by their names. */
export type Settings = Readonly<Record<string, string>>;

interface Question {
  readonly params?: Readonly<Record<string, unknown>>;
  readonly settings?: Settings;
  readonly queryId?: string;
  readonly sessionId?: string;
  readonly signal?: AbortSignal;
}

/** Asks on a connection of its own: a balancer may lead each to another server. @throws ClickHouse's errors */
export async function ask<Row>(
  config: ClickHouseConfig,
  query: string,
  { settings, ...question }: Question = {},
): Promise<Row[]> {
  // CHECK GRANT takes no FORMAT.
  const all = { ...PINNED_SETTINGS, ...settings, default_format: 'JSONEachRow' };
  const lines = (await send(config, query, { ...question, settings: all })).split('\n');
  return lines.filter((line) => line !== '').map((line): Row => JSON.parse(line));
}

/** Sends a statement with these settings alone, and returns what ClickHouse responds. @throws ClickHouse's errors */
export async function send(
  config: ClickHouseConfig,
  query: string,
  { params = {}, settings = {}, queryId, sessionId, signal }: Question = {},
): Promise<string> {
  await using client = clientOf(config, 'default', settings);
  const { stream } = await client.exec({
    ...{ query, query_params: { ...params } },
    ...(queryId !== undefined && { query_id: queryId }),
    ...(sessionId !== undefined && { session_id: sessionId }),
    ...(signal && { abort_signal: signal }),
  });
  return await text(stream);
}

/** Returns a client with one connection, which the caller closes. @param database that exists */
export function clientOf(config: ClickHouseConfig, database: string, settings: Settings): ClickHouseClient {
  return createClickHouse(
    { ...config, CLICKHOUSE_DATABASE: database },
    {
      ...{ application: 'sluice-doctor', requestTimeoutMs: REQUEST_MS_MAX, connectionsMax: 1 },
      settings: settings as NonNullable<Parameters<typeof createClickHouse>[1]['settings']>,
    },
  );
}

/** Whether an account has all of some rights. @throws ClickHouse's errors */
export async function hasRights(config: ClickHouseConfig, rights: readonly string[]): Promise<boolean> {
  return (await ask<{ result: number }>(config, `CHECK GRANT ${rights.join(', ')}`))[0]?.result === 1;
}
