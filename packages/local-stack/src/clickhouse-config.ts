import { createHash } from 'node:crypto';
import { type AccountOptions, type ProfileSetting, readAccounts } from './clickhouse-accounts.ts';

export interface ClickHouseServerConfig {
  readonly httpPort: number;
  readonly tcpPort: number;
  readonly logFile: string;
  readonly usersFile: string;
  readonly memoryBytesMax: number;
  /** Whether it keeps `system.query_log`. */
  readonly queryLog: boolean;
  /** As in the options. */
  readonly kafkaSessionTimeoutMs: number | undefined;
  /** The only folder that `BACKUP` and `RESTORE` may use. */
  readonly backupDir: string;
}

/**
 * Makes tables that nobody writes to cheap: with the engine's own values each is looked at about twice a second, which takes
 * a core 10 ms a second for each database. An insert still wakes its table at once. What age alone merges is one merge of a
 * table for each look. The engine has two threads for this, of which one at a time may look at tables, and logs a warning
 * for each table that has to wait.
 */
const IDLE_TABLES = [
  value('background_schedule_pool_size', 16),
  value('background_processing_pool_thread_sleep_seconds_if_nothing_to_do', 1),
  value('background_processing_pool_task_sleep_seconds_when_no_work_max', 1),
  // Each look for old and empty parts counts as work, after which the next one is soon.
  element('merge_tree', value('merge_tree_clear_old_parts_interval_seconds', 5)),
];

/** A server whose tables replicate. */
export interface ReplicaConfig {
  /** Of Keeper on 127.0.0.1, or of a proxy to it. */
  readonly keeperPort: number;
  /** The macro `shard`. */
  readonly shard: string;
  /** The macro `replica`. */
  readonly name: string;
}

/** Where a replica listens for others. */
export const INTERSERVER_HOST = '127.0.0.2';

/** A file of `config.d`. */
export function replicaConfigXml({ keeperPort, shard, name }: ReplicaConfig): string {
  const node = element('node', value('host', '127.0.0.1') + value('port', keeperPort));
  // Servers end each other's sessions by their UUIDs, which all local ones have in common.
  const sessions = value('session_timeout_ms', SESSION_TIMEOUT_MS) + value('sessions_path', `/sessions/${name}`);
  return document([
    element('zookeeper', node + sessions),
    element('macros', value('shard', shard) + value('replica', name)),
    ...['127.0.0.1', INTERSERVER_HOST].map((host) => value('listen_host', host)),
  ]);
}

const SESSION_TIMEOUT_MS = 5000;

/** The server's config.xml. */
export function serverConfigXml(config: ClickHouseServerConfig): string {
  return document([
    value('http_port', config.httpPort),
    value('tcp_port', config.tcpPort),
    value('users_config', config.usersFile),
    value('max_server_memory_usage', config.memoryBytesMax),
    value('mark_cache_size', 256 * 1024 * 1024),
    ...IDLE_TABLES,
    element(
      'logger',
      value('level', 'information') + value('log', config.logFile) + value('size', '16M') + value('count', 2),
    ),
    element('backups', value('allowed_path', config.backupDir)),
    config.kafkaSessionTimeoutMs === undefined
      ? ''
      : element('kafka', value('session_timeout_ms', config.kafkaSessionTimeoutMs)),
    config.queryLog ? element('query_log', value('database', 'system') + value('table', 'query_log')) : '',
  ]);
}

export interface AddedUsers {
  /** Settings of every account's profile. */
  readonly profile: Readonly<Record<string, string>>;
  /** The accounts of the services, where they are wanted. */
  readonly accounts?: AccountOptions | undefined;
}

export interface Users extends AddedUsers {
  /** The name and the password of the administrator. */
  readonly user: string;
  readonly password: string;
}

/**
 * The server's users.xml: an administrator, and the accounts of the services where they are wanted.
 *
 * `clickhouse local` itself always logs in as `default` without a password, from 127.0.0.1. With a password, therefore,
 * the administrator has another name, and `default` may have only one session, the server's own, so that nobody else
 * gets in.
 */
export async function usersXml({ user, password, profile, accounts }: Users): Promise<string> {
  const administrator =
    value('password', password) + value('profile', 'account') + value('access_management', 1) + LOCAL;
  const startServer = element('grants', value('query', 'GRANT SYSTEM LISTEN ON *.*'));
  const users =
    password === ''
      ? element('default', administrator)
      : element('default', value('password', '') + value('profile', 'closed') + startServer + LOCAL) +
        element(user, administrator);
  const profiles =
    element('default', '') +
    element('account', settingsXml(profile)) +
    element('closed', value('max_sessions_for_user', 1));
  const added = await accountsXml(accounts, 'account');
  return document([
    element('profiles', profiles + added.profiles),
    element('quotas', element('default', '')),
    element('users', users + added.users),
  ]);
}

/** A file of users.d that adds settings to the profile `default`, and the accounts of the services. */
export async function addedUsersXml({ profile, accounts }: AddedUsers): Promise<string> {
  const { profiles, users } = await accountsXml(accounts, 'default');
  return document([element('profiles', element('default', settingsXml(profile)) + profiles), element('users', users)]);
}

/** From where an account logs in. None has a quota. */
const LOCAL = element('networks', value('ip', '127.0.0.1')) + value('quota', 'default');
const ANYWHERE = element('networks', value('ip', '::/0')) + value('quota', 'default');

/** @param parent the profile whose settings all accounts have */
async function accountsXml(options: AccountOptions | undefined, parent: string) {
  if (!options) return { profiles: '', users: '' };
  const { profiles, accounts } = await readAccounts(options.databases);
  const profileElements = [...profiles].map(([name, settings]) =>
    element(name, value('profile', parent) + limitsXml(settings)),
  );
  const users = [...accounts].map(([name, { profile = parent, grants }]) => {
    const hash = createHash('sha256').update(options.passwords[name]).digest('hex');
    const all = [...grants, ...(options.added?.[name] ?? [])];
    const rights = element('grants', all.map((grant) => value('query', grant)).join(''));
    return element(name, value('password_sha256_hex', hash) + value('profile', profile) + ANYWHERE + rights);
  });
  return { profiles: profileElements.join(''), users: users.join('') };
}

function limitsXml(settings: ReadonlyMap<string, ProfileSetting>): string {
  const limits = [...settings].map(([name, { min, max, isFixed }]) => {
    const bounds = Object.entries({ min, max }).flatMap(([bound, limit]) => (limit ? [value(bound, limit)] : []));
    return element(name, bounds.join('') + (isFixed ? '<readonly/>' : ''));
  });
  const values = [...settings].map(([name, setting]) => value(name, setting.value));
  return values.join('') + element('constraints', limits.join(''));
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
