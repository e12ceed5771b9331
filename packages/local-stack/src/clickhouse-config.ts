export interface ClickHouseShardAddress {
  readonly tcpPort: number;
  readonly user: string;
  readonly password: string;
}

/** Clusters by name; each shard is one server on 127.0.0.1. */
export type RemoteServers = Readonly<Record<string, readonly ClickHouseShardAddress[]>>;

export interface ClickHouseServerConfig {
  readonly httpPort: number;
  readonly tcpPort: number;
  readonly logFile: string;
  readonly usersFile: string;
  readonly memoryBytesMax: number;
  /** Whether it keeps `system.query_log`. */
  readonly queryLog: boolean;
  readonly remoteServers: RemoteServers;
}

/** The server's config.xml. */
export function serverConfigXml(config: ClickHouseServerConfig): string {
  const clusters = Object.entries(config.remoteServers).map(([name, shards]) =>
    element(name, shards.map((shard) => element('shard', element('replica', replicaXml(shard)))).join('')),
  );
  return document([
    value('http_port', config.httpPort),
    value('tcp_port', config.tcpPort),
    value('users_config', config.usersFile),
    value('max_server_memory_usage', config.memoryBytesMax),
    value('mark_cache_size', 256 * 1024 * 1024),
    element(
      'logger',
      value('level', 'information') + value('log', config.logFile) + value('size', '16M') + value('count', 2),
    ),
    element('remote_servers', clusters.join('')),
    config.queryLog ? element('query_log', value('database', 'system') + value('table', 'query_log')) : '',
  ]);
}

function replicaXml({ tcpPort, user, password }: ClickHouseShardAddress): string {
  return value('host', '127.0.0.1') + value('port', tcpPort) + value('user', user) + value('password', password);
}

export interface ClickHouseAccount {
  readonly user: string;
  readonly password: string;
  /** The settings of the account's profile. */
  readonly profile: Readonly<Record<string, string>>;
}

/**
 * The server's users.xml.
 *
 * `clickhouse local` itself always logs in as `default` without a password, from 127.0.0.1. With a password, therefore,
 * the account has another name, and `default` may have only one session, the server's own, so that nobody else gets in.
 */
export function usersXml({ user, password, profile }: ClickHouseAccount): string {
  const networks = element('networks', value('ip', '127.0.0.1'));
  const common = networks + value('quota', 'default');
  const open = value('profile', 'account') + value('access_management', 1);
  const startServer = element('grants', value('query', 'GRANT SYSTEM LISTEN ON *.*'));
  const users =
    password === ''
      ? element('default', value('password', '') + open + common)
      : element('default', value('password', '') + value('profile', 'closed') + startServer + common) +
        element(user, value('password', password) + open + common);
  const profiles =
    element('default', '') +
    element('account', settingsXml(profile)) +
    element('closed', value('max_sessions_for_user', 1));
  return document([element('profiles', profiles), element('quotas', element('default', '')), element('users', users)]);
}

/** A file of users.d that adds settings to the profile `default`. */
export function profileXml(profile: Readonly<Record<string, string>>): string {
  return document([element('profiles', element('default', settingsXml(profile)))]);
}

function settingsXml(profile: Readonly<Record<string, string>>): string {
  return Object.entries(profile)
    .map(([name, setting]) => value(name, setting))
    .join('');
}

function document(elements: readonly string[]): string {
  return `<clickhouse>${elements.join('\n')}</clickhouse>\n`;
}

function element(name: string, content: string): string {
  return `<${name}>${content}</${name}>`;
}

function value(name: string, content: string | number): string {
  const escaped = String(content).replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
  return element(name, escaped);
}
