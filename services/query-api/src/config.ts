import { promises } from 'node:dns';
import { isIP, isIPv4 } from 'node:net';
import {
  type ClickHouseConfig,
  ConfigError,
  clickHouseAddress,
  clickHouseDatabase,
  clickHouseEnv,
  commaSeparated,
  integer,
  isReplicated,
  isShared,
  quarterOfHeap,
  serviceEnv,
} from '@sluice/shared/config';
import { secret } from '@sluice/shared/config/secret-files';
import { workspaceName } from '@sluice/shared/keys/keys-file';
import { loadServersConfig, type ServersConfig, serverAt, serversEnv } from '@sluice/shared/servers/server-config';
import type { Server } from '@sluice/shared/servers/servers-file';
import { z } from 'zod';

const serviceUrl = z.url({ protocol: /^https?$/, error: 'must be an http:// or https:// address' });

/** A network such as `10.1.0.0/16`, `fd00::/8`, or a single address. */
export const network = z.string().refine(isNetwork, 'must be a network such as 10.1.0.0/16 or fd00::/8, or an address');

function isNetwork(text: string): boolean {
  const [address = '', bits, more] = text.split('/');
  const most = isIPv4(address) ? 32 : 128;
  return (
    isIP(address) !== 0 &&
    more === undefined &&
    (bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) <= most))
  );
}

/** A DNS server: an address, perhaps with a port. */
export const dnsServer = z
  .string()
  .refine(isDnsServer, 'must be an address, perhaps with a port, such as 10.0.0.53 or [fd00::53]:5353');

function isDnsServer(text: string): boolean {
  try {
    new promises.Resolver().setServers([text]);
    return true;
  } catch {
    return false;
  }
}

/** The environment of query-api; docs/operate/configuration.md explains each variable. */
export const configSchema = z
  .object({
    ...serviceEnv(4001),
    ...clickHouseEnv,
    ...serversEnv,
    READ_LAG_MS_MAX: integer(1_000, 3_600_000).default(5_000),
    READ_STALE_MS_MAX: integer(5_000, 3_600_000).default(60_000),
    READ_SPREAD: z.stringbool().default(false),
    API_KEYS_FILE: z.string().optional(),
    API_KEYS_CHANGEABLE: z.stringbool().default(false),
    RATE_LIMIT_DEFAULT: integer(1).optional(),
    CORS_ORIGINS: commaSeparated.default([]),
    QUERY_ANONYMOUS_WORKSPACE: workspaceName.optional(),
    OPERATOR_WORKSPACE: workspaceName.optional(),
    INGEST_URLS: commaSeparated.pipe(z.array(serviceUrl)).optional(),
    WRITER_URL: commaSeparated.pipe(z.array(serviceUrl)).optional(),
    REPLAY_URL: commaSeparated.pipe(z.array(serviceUrl)).optional(),
    QUERY_TIMEOUT_MS: integer(100, 600_000).default(10_000),
    COUNT_TIMEOUT_MS: integer(10, 600_000).default(1_000),
    QUERY_MEMORY_BYTES_MAX: integer(16 * 1_024 * 1_024).default(1_024 * 1_024 * 1_024),
    QUERY_RESULT_BYTES_MAX: integer(1_024 * 1_024).default(512 * 1_024 * 1_024),
    QUERY_BYTES_READ_MAX: integer(1_024 * 1_024).default(64 * 1_024 * 1_024 * 1_024),
    QUERY_ROWS_READ_MAX: integer(1).optional(),
    QUERY_THREADS_MAX: integer(1, 1_000).optional(),
    QUERY_CONNECTIONS_MAX: integer(1, 1_000).default(32),
    QUERY_CONCURRENCY_PER_WORKSPACE: integer(1, 1_000).default(8),
    REPORT_CONNECTIONS_MAX: integer(1, 1_000).default(4),
    REPORT_CONCURRENCY_PER_WORKSPACE: integer(1, 1_000).default(2),
    EXPORT_CONNECTIONS_MAX: integer(1, 1_000).default(2),
    QUERY_PENDING_MAX: integer(1).default(512),
    QUERY_PENDING_BYTES_MAX: integer(24 * 1_024 * 1_024).default(quarterOfHeap),
    CLICKHOUSE_SQL_USER: z.string().min(1).optional(),
    ...secret('CLICKHOUSE_SQL_PASSWORD'),
    CLICKHOUSE_SQL_DATABASE: clickHouseDatabase.optional(),
    SQL_RESULT_ROWS_MAX: integer(1, 100_000_000).default(1_000_000),
    CLICKHOUSE_WEBHOOKS_USER: z.string().min(1).optional(),
    ...secret('CLICKHOUSE_WEBHOOKS_PASSWORD'),
    CLICKHOUSE_WEBHOOKS_URL: clickHouseAddress.optional(),
    CLICKHOUSE_WEBHOOKS_DATABASE: clickHouseDatabase.optional(),
    WEBHOOK_DELIVERY: z.stringbool().default(true),
    WEBHOOK_ALLOW_NETWORKS: commaSeparated.pipe(z.array(network)).default([]),
    WEBHOOK_DNS_SERVERS: commaSeparated.pipe(z.array(dnsServer).min(1)).optional(),
    WEBHOOK_TIMEOUT_MS: integer(100, 60_000).default(10_000),
    WEBHOOK_RETRY_MS_MAX: integer(1_000, 86_400_000).default(900_000),
    WEBHOOK_GIVE_UP_MS: integer(1_000, 2_592_000_000).default(86_400_000),
    WEBHOOK_LEASE_MS: integer(1_000, 600_000).default(15_000),
    WEBHOOK_ATTEMPTS_PER_WORKSPACE: integer(1, 1_000).default(20),
    WEBHOOKS_PER_WORKSPACE: integer(1, 10_000).default(20),
    STREAM_INTERVAL_MS: integer(10, 60_000).default(500),
    STREAM_LISTENERS_PER_WORKSPACE: integer(1).default(100),
    STREAM_LISTENERS_MAX: integer(1).default(1_000),
  })
  .refine((config) => config.API_KEYS_FILE !== undefined || config.QUERY_ANONYMOUS_WORKSPACE !== undefined, {
    path: ['API_KEYS_FILE'],
    message: 'is needed, unless QUERY_ANONYMOUS_WORKSPACE names a workspace that may be read without a key',
  })
  .refine((config) => !isShared(config) || config.CLICKHOUSE_SQL_USER === undefined, {
    path: ['CLICKHOUSE_SQL_USER'],
    message: 'cannot be used where replicas share the rows: its profile would have to ask for what was just written',
  });

export type QueryConfig = z.output<typeof configSchema>;

/**
 * Returns the configuration of query-api.
 *
 * @throws {ConfigError} naming every variable that is wrong
 */
export function loadQueryConfig(env: Readonly<Record<string, string | undefined>>): ServersConfig<typeof configSchema> {
  const gone = env['CLICKHOUSE_CLUSTER']
    ? ['CLICKHOUSE_CLUSTER: is not supported any more; CLICKHOUSE_SERVERS_FILE names several ClickHouse servers']
    : [];
  try {
    const loaded = loadServersConfig(configSchema, env);
    if (isReplicated(loaded.config) && loaded.config.CLICKHOUSE_WEBHOOKS_URL && !webhooksServerOf(loaded))
      gone.push(
        'CLICKHOUSE_WEBHOOKS_URL: must be the address of one server of CLICKHOUSE_SERVERS_FILE where ClickHouse replicates the tables, the same for all query-apis',
      );
    if (gone.length === 0) return loaded;
  } catch (error) {
    if (error instanceof ConfigError) gone.push(...error.errors);
    else throw error;
  }
  throw new ConfigError(gone);
}

/** Returns the server of the file that stores the state of webhooks; undefined where none has its address. */
export function webhooksServerOf({ config, servers }: ReturnType<typeof loadQueryConfig>): Server | undefined {
  return serverAt(servers ?? [], config.CLICKHOUSE_WEBHOOKS_URL ?? config.CLICKHOUSE_URL);
}

/** Returns how many queries may run at once, without urgent ones. Each needs a connection. */
export function connectionsOf(config: QueryConfig): number {
  return config.QUERY_CONNECTIONS_MAX + config.REPORT_CONNECTIONS_MAX + config.EXPORT_CONNECTIONS_MAX;
}

/** Returns the database with the views for statements of clients. */
export function sqlDatabaseOf(config: Pick<QueryConfig, 'CLICKHOUSE_DATABASE' | 'CLICKHOUSE_SQL_DATABASE'>): string {
  return config.CLICKHOUSE_SQL_DATABASE ?? `${config.CLICKHOUSE_DATABASE}_sql`;
}

/** Returns how statements of clients reach ClickHouse; undefined where they have no account. */
export function sqlConfigOf(config: QueryConfig): ClickHouseConfig | undefined {
  const { CLICKHOUSE_SQL_USER: user, CLICKHOUSE_SQL_PASSWORD: password } = config;
  if (user === undefined) return undefined;
  return ofAccount(config, { user, password, url: config.CLICKHOUSE_URL, database: sqlDatabaseOf(config) });
}

/** Returns how the state of webhooks reaches ClickHouse; undefined where it has no account. */
export function webhooksConfigOf(config: QueryConfig): ClickHouseConfig | undefined {
  const { CLICKHOUSE_WEBHOOKS_USER: user, CLICKHOUSE_WEBHOOKS_PASSWORD: password } = config;
  if (user === undefined) return undefined;
  const { CLICKHOUSE_WEBHOOKS_URL: url = config.CLICKHOUSE_URL } = config;
  return ofAccount(config, {
    ...{ user, password, url, database: config.CLICKHOUSE_WEBHOOKS_DATABASE ?? config.CLICKHOUSE_DATABASE },
  });
}

/** Returns how the same account reaches another server; undefined where there is no such account. */
export function webhooksConfigOn(
  config: QueryConfig,
  { url, database }: { readonly url: string; readonly database: string },
): ClickHouseConfig | undefined {
  return webhooksConfigOf({
    ...{ ...config, CLICKHOUSE_URL: url, CLICKHOUSE_DATABASE: database },
    ...{ CLICKHOUSE_WEBHOOKS_URL: undefined, CLICKHOUSE_WEBHOOKS_DATABASE: undefined },
  });
}

interface Account {
  readonly user: string;
  readonly password: string | undefined;
  readonly url: string;
  readonly database: string;
}

function ofAccount(config: QueryConfig, { user, password, url: address, database }: Account): ClickHouseConfig {
  const url = new URL(address);
  // A login in the address would come first.
  Object.assign(url, { username: '', password: '' });
  return {
    ...config,
    CLICKHOUSE_URL: url.href,
    CLICKHOUSE_DATABASE: database,
    CLICKHOUSE_USER: user,
    CLICKHOUSE_PASSWORD: password,
    // Certificates are of the account of the service.
    CLICKHOUSE_CERT_FILE: undefined,
    CLICKHOUSE_KEY_FILE: undefined,
  };
}
