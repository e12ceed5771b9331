import type { ClickHouseClient } from '@sluice/shared/clickhouse/client';
import { STATEMENTS } from './statements.ts';

/** For how many days the events of a workspace are kept. */
export interface RetentionSetting {
  readonly workspace: string;
  /** 0 when it has none any more. */
  readonly days: number;
  /** How long ago it was set, in milliseconds. */
  readonly ageMs: number;
  /** The time of ClickHouse when it was read, in milliseconds since 1970. */
  readonly nowMs: number;
}

/** Returns all settings, those that are over among them. @throws ClickHouse's errors */
export async function readRetention(client: ClickHouseClient): Promise<readonly RetentionSetting[]> {
  const result = await client.query({ query: STATEMENTS['read-retention'].sql, format: 'JSONEachRow' });
  return await result.json<RetentionSetting>();
}

/** Sets for how many days the events of a workspace are kept; `undefined`: as those of all others. @throws ClickHouse's errors */
export async function recordRetention(
  client: ClickHouseClient,
  workspace: string,
  days: number | undefined,
): Promise<void> {
  const query_params = { workspace, days: days ?? 0 };
  await client.command({ query: STATEMENTS['record-retention'].sql, query_params });
}
