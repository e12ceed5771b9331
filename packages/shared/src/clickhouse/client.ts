import { type ClickHouseClient, ClickHouseLogLevel, type ClickHouseSettings, createClient } from '@clickhouse/client';
import type { Logger } from '../base/log.ts';
import { type ClickHouseConfig, isShared } from '../config/config.ts';
import { loginHeaders, tlsAgent } from './connection.ts';
import { pinnedSettings, sharedSettings } from './settings.ts';
import { statementTracer } from './statement-tracer.ts';

export type { ClickHouseClient } from '@clickhouse/client';

export interface ClickHouseOptions {
  /** The service's name in ClickHouse's query log. */
  readonly application: string;
  /** How long a request may take, in milliseconds. ClickHouse must end the query before (`max_execution_time`). */
  readonly requestTimeoutMs: number;
  readonly connectionsMax: number;
  /** Is told of changed files of TLS. Default: nobody is. */
  readonly logger?: Logger;
  /** Settings of each request. Default: those that decide what our statements mean. */
  readonly settings?: ClickHouseSettings;
}

/**
 * Creates a client of ClickHouse's HTTP interface for the configured database.
 *
 * @throws {TlsFilesError} when the files of TLS cannot be used
 */
export function createClickHouse(config: ClickHouseConfig, options: ClickHouseOptions): ClickHouseClient {
  const agent = tlsAgent(config, { keepAlive: true, maxSockets: options.connectionsMax }, options.logger);
  return createClient({
    url: config.CLICKHOUSE_URL,
    database: config.CLICKHOUSE_DATABASE,
    http_headers: loginHeaders(config),
    set_basic_auth_header: false,
    ...(agent && { http_agent: agent }),
    application: options.application,
    request_timeout: options.requestTimeoutMs,
    max_open_connections: options.connectionsMax,
    // Servers close an idle connection after 3 s (the older default of keep_alive_timeout): close it before they do.
    keep_alive: { enabled: true, idle_socket_ttl: 2_000 },
    clickhouse_settings: { ...(options.settings ?? pinnedSettings), ...(isShared(config) && sharedSettings) },
    tracer: statementTracer,
    log: { level: ClickHouseLogLevel.OFF },
  });
}
