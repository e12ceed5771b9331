import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';

// The account of one workspace for analysts' tools, which log in at ClickHouse themselves. The views and the policies are those of
// POST /queries (deploy/clickhouse/sql), with what query-api says in headers of its requests put in their place. Whoever logs in
// chooses each statement and, in its sub-selects, each setting: nothing here rests on what a statement looks like.

const folder = new URL('../../../../deploy/clickhouse/sql/', import.meta.url);
const VIEWS = readFileSync(new URL('views.sql', folder), 'utf8');
const POLICIES = readFileSync(new URL('accounts.xml', folder), 'utf8');
const MEMBERSHIPS = readFileSync(new URL('memberships.sql', import.meta.url), 'utf8');

/** What ClickHouse calls the parts of an account. */
export interface AccountNames {
  /** Of the account itself, of its settings profile and of the database with its views. */
  readonly account: string;
  /** Of the account that the views read the tables as, and of its row policies. Nobody can log in as it. */
  readonly owner: string;
}

/**
 * Returns the names for a workspace. No two workspaces have the same: other letters than those of a name in SQL, with which some
 * tools cannot work, become a hash of the workspace.
 *
 * @param database the database of the services
 */
export function accountNames(database: string, workspace: string): AccountNames {
  const isPlain = /^[A-Za-z0-9_]+$/.test(workspace) && !HASHED.test(workspace);
  const hash = createHash('sha256').update(workspace).digest('hex').slice(0, HASH_DIGITS);
  const suffix = isPlain ? workspace : `${workspace.replaceAll(/[^A-Za-z0-9_]/g, '_')}__${hash}`;
  return { account: `${accountPrefix(database)}${suffix}`, owner: `${database}_views_${suffix}` };
}

const HASH_DIGITS = 12;
const HASHED = new RegExp(`__[0-9a-f]{${HASH_DIGITS}}$`);

/** Returns how the names of all accounts begin. */
export function accountPrefix(database: string): string {
  return `${database}_tools_`;
}

/** What an account is created with. */
export interface NewAccount {
  /** The database of the services. */
  readonly database: string;
  readonly workspace: string;
  /** SHA-256, in hex; undefined to leave the password of an account that exists. */
  readonly passwordHash: string | undefined;
}

/** Returns the statements that create an account, or bring one to the state of this version. They may be run again. */
export function createStatements({ database, workspace, passwordHash }: NewAccount): readonly string[] {
  const { account, owner } = accountNames(database, workspace);
  const policies = policiesOf(database, workspace);
  const tables = Object.keys(policies).map((table) => `${name(database)}.${table}`);
  return [
    // `sluice sql-account list` reads the comment.
    `CREATE DATABASE IF NOT EXISTS ${name(account)} COMMENT '${workspace}'`,
    // No password has this hash, and no host may log in.
    `CREATE USER IF NOT EXISTS ${name(owner)} IDENTIFIED WITH sha256_hash BY '${'0'.repeat(64)}' HOST NONE`,
    // ALTER keeps who a policy or a profile is for, also where one is there already: OR REPLACE would make another one of the name.
    ...Object.entries(policies).flatMap(([table, filter]) => {
      const policy = `${name(owner)} ON ${name(database)}.${table}`;
      return [
        `CREATE ROW POLICY IF NOT EXISTS ${policy} USING 0 TO ${name(owner)}`,
        `ALTER ROW POLICY ${policy} USING ${filter} TO ${name(owner)}`,
      ];
    }),
    // Rights come after the policies: no row is ever shown without them.
    ...tables.map((table) => `GRANT SELECT ON ${table} TO ${name(owner)}`),
    ...viewStatements({ database, account, owner }),
    `CREATE SETTINGS PROFILE IF NOT EXISTS ${name(account)}`,
    `ALTER SETTINGS PROFILE ${name(account)} SETTINGS\n  ${PROFILE.join(',\n  ')}`,
    ...(passwordHash === undefined
      ? []
      : [
          `CREATE USER IF NOT EXISTS ${name(account)} IDENTIFIED WITH sha256_hash BY '${passwordHash}' HOST ANY DEFAULT DATABASE ${name(account)} SETTINGS PROFILE ${name(account)}`,
          `ALTER USER ${name(account)} IDENTIFIED WITH sha256_hash BY '${passwordHash}'`,
        ]),
    `GRANT SELECT ON ${name(account)}.* TO ${name(account)}`,
  ];
}

/** Returns the statements that remove all of an account. They may be run again. */
export function deleteStatements(database: string, workspace: string): readonly string[] {
  const { account, owner } = accountNames(database, workspace);
  const tables = Object.keys(policiesOf(database, workspace));
  return [
    `DROP USER IF EXISTS ${name(account)}`,
    `DROP SETTINGS PROFILE IF EXISTS ${name(account)}`,
    `DROP DATABASE IF EXISTS ${name(account)}`,
    `DROP USER IF EXISTS ${name(owner)}`,
    ...tables.map((table) => `DROP ROW POLICY IF EXISTS ${name(owner)} ON ${name(database)}.${table}`),
  ];
}

/**
 * The account's limits. What drivers and tools set may be changed within bounds; every other setting is as it is. The bounds of a
 * sub-select's settings are not checked by ClickHouse: what has to hold there is in {@link PINNED}.
 */
const PROFILE: readonly string[] = [
  'readonly = 1',
  'allow_ddl = 0',
  'allow_introspection_functions = 0',
  'max_execution_time = 60 MIN 1 MAX 300 CHANGEABLE_IN_READONLY',
  'max_result_rows = 1000000 MIN 1 MAX 1000000 CHANGEABLE_IN_READONLY',
  'max_result_bytes = 1000000000 MIN 1 MAX 1000000000 CHANGEABLE_IN_READONLY',
  "result_overflow_mode = 'throw' CHANGEABLE_IN_READONLY",
  'extremes = 0 CHANGEABLE_IN_READONLY',
  'limit = 0 CHANGEABLE_IN_READONLY',
  'select_sequential_consistency = 0 CHANGEABLE_IN_READONLY',
  // JDBC sends it with each statement.
  'async_insert = 0 CHANGEABLE_IN_READONLY',
  'join_use_nulls = 0 CHANGEABLE_IN_READONLY',
  "session_timezone = 'UTC' CHANGEABLE_IN_READONLY",
  'max_concurrent_queries_for_user = 8',
  'max_memory_usage = 1000000000',
  'max_memory_usage_for_user = 2000000000',
  'max_temporary_data_on_disk_size_for_user = 2000000000',
  'max_bytes_to_read = 50000000000',
  'max_threads = 2',
  // Pages of query-api go first.
  'priority = 3',
  // They know the values of all workspaces, and `EXPLAIN` would tell.
  'use_skip_indexes = 0',
];

/**
 * Settings of the views themselves, which no statement around them can change. Otherwise a sub-select with settings of its own would
 * reach what is behind a view: cut the list of deletions short, filter it, or have `EXPLAIN` tell what other workspaces have.
 */
const PINNED: readonly string[] = [
  ...['read', 'group_by', 'set', 'sort', 'timeout'].map((limit) => `${limit}_overflow_mode = 'throw'`),
  "read_overflow_mode_leaf = 'throw'",
  'additional_table_filters = {}',
  'join_use_nulls = 0',
  'use_skip_indexes = 0',
  'enable_parallel_replicas = 0',
];

/** Returns the statements of the views, and of the function in them, in the names of an account. */
function viewStatements({ database, account, owner }: AccountNames & { readonly database: string }): string[] {
  return `${VIEWS}\n${MEMBERSHIPS}`
    .replaceAll(/^--.*\n/gm, '')
    .split(/;\n/)
    .map((statement) => statement.trim())
    .filter((statement) => statement !== '' && !statement.startsWith('CREATE DATABASE'))
    .map((statement) =>
      statement
        .replaceAll(/\bsluice_sql_owner\b/g, name(owner))
        .replaceAll(/\bsluice_sql(?=\.[a-z])/g, name(account))
        .replaceAll(/\bsluice(?=\.[a-z])/g, name(database))
        .replace(/(?=\nCOMMENT ')/, `\nSETTINGS ${PINNED.join(', ')}`),
    )
    .map(withHashes);
}

/** Has deletions name users by hashes: `EXPLAIN` shows the constants of conditions. */
function withHashes(sql: string): string {
  return sql
    .replaceAll(/(?<=transform\(\s*)(if\(.*?, user_id\)|user_id|id)(?=,\s*\(SELECT)/g, 'hex(sipHash128($1))')
    .replaceAll('groupArray(user_id)', 'groupArray(hex(sipHash128(user_id)))');
}

/** Returns the condition of the rows of each table that the owner of the views may read. */
function policiesOf(database: string, workspace: string): Readonly<Record<string, string>> {
  const own = `'${workspace}'`;
  const headers: Readonly<Record<string, string>> = {
    'X-Sluice-Workspace': own,
    'X-Sluice-Deletions': `ifNull((
      SELECT if(count() = 0, 'none', 'some') FROM sluice.pending_deletions WHERE workspace_id = ${own}), 'some')`,
    // Each server has the deletions that it has stored itself.
    'X-Sluice-Deleted-Users': `''`,
    'X-Sluice-Kept-From': `ifNull((
      SELECT if(kept = 0, 'all', toString(toUnixTimestamp64Milli(toDateTime64(toDate32(now('UTC')) - kept, 3, 'UTC'))))
      FROM (
        SELECT
          argMaxIf(days, set_at, workspace_id = ${own}) AS of_workspace,
          argMaxIf(days, set_at, workspace_id = '') AS of_others,
          if(of_workspace > 0, of_workspace, of_others) AS kept
        FROM sluice.retention)), '')`,
  };
  const filters = [...POLICIES.matchAll(/<(\w+)>\s*<filter>\s*(.*?)\s*<\/filter>/gs)].map(
    ([, table = '', filter = '']) => [
      table,
      filter.replaceAll(/getClientHTTPHeader\('([^']+)'\)/g, (_, header: string) => headers[header] ?? ''),
    ],
  );
  const all = { ...Object.fromEntries(filters), retention: `workspace_id IN ('', ${own})` } as Record<string, string>;
  return Object.fromEntries(
    Object.entries(all).map(([table, filter]) => [
      table,
      withHashes(filter).replaceAll(/\bsluice(?=\.[a-z])/g, name(database)),
    ]),
  );
}

function name(text: string): string {
  return `\`${text}\``;
}
