import { type ClickHouseClient, ClickHouseLogLevel, createClient } from '@clickhouse/client';
import type { ClickHouseConfig } from '../config.ts';
import { pinnedSettings } from './settings.ts';

export type { ClickHouseClient } from '@clickhouse/client';

export interface ClickHouseOptions {
  /** Names the service in ClickHouse's own logs. */
  readonly application: string;
  /** How long a request may take, in milliseconds; ClickHouse is to give up before (`max_execution_time`). */
  readonly requestTimeoutMs: number;
  readonly connectionsMax: number;
}

/** A client of ClickHouse's HTTP interface, bound to the configured database. */
export function createClickHouse(config: ClickHouseConfig, options: ClickHouseOptions): ClickHouseClient {
  return createClient({
    url: config.CLICKHOUSE_URL,
    database: config.CLICKHOUSE_DATABASE,
    username: config.CLICKHOUSE_USER,
    password: config.CLICKHOUSE_PASSWORD,
    application: options.application,
    request_timeout: options.requestTimeoutMs,
    max_open_connections: options.connectionsMax,
    // The server closes an idle connection after 3 s (keep_alive_timeout in older defaults); leave before it does.
    keep_alive: { enabled: true, idle_socket_ttl: 2_000 },
    clickhouse_settings: pinnedSettings,
    log: { level: ClickHouseLogLevel.OFF },
  });
}
