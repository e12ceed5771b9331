import { execFile } from 'node:child_process';
import { readFile, stat } from 'node:fs/promises';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { makeTempDir } from '@sluice/local-stack/testing/temp-dir';
import { HOSTILE_STATEMENTS } from '@sluice/query-api/testing/hostile-sql';
import { ADMINISTRATOR } from '@sluice/shared/clickhouse/testing/test-accounts';
import { inherited } from '@sluice/shared/testing/inherited';
import { programFile } from '@sluice/shared/testing/program-file';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  type Driver,
  type DriverResult,
  driversToRun,
  runDriver,
  SECRET,
  startTools,
  type ToolsWorld,
} from '../kit/clients/analysts-tools.ts';
import { listening } from '../kit/http-server.ts';
import { DATABASE, isOfAccounts, type PrintedAccount } from '../kit/sql-account.ts';

// The account of docs/guide/bi.md, by the drivers of the tools and by whoever has its password.

const guide = await readFile(new URL('../../docs/guide/bi.md', import.meta.url), 'utf8');

const MANY = 20_000;

const stack = new AsyncDisposableStack();
let world: ToolsWorld;
let rowsBefore: string;

beforeAll(async () => {
  world = stack.use(await startTools(MANY));
  rowsBefore = await world.asAdministrator(ALL_ROWS);
});
afterAll(() => stack.disposeAsync());

/** Sends a statement as an account, and returns what ClickHouse answers, an error as well. */
async function ask(
  sql: string,
  settings: Readonly<Record<string, string>> = {},
  { account, password }: Pick<PrintedAccount, 'account' | 'password'> = world.acme,
): Promise<string> {
  const search = new URLSearchParams({ default_format: 'TSV', database: world.acme.account, ...settings });
  const headers = { 'X-ClickHouse-User': account, 'X-ClickHouse-Key': password };
  const response = await fetch(`${world.clickhouse.url}/?${search}`, { method: 'POST', body: sql, headers });
  return (await response.text()).trim();
}

/** The statements of the guide, in the order in which it has them. */
const OF_GUIDE = [...guide.matchAll(/^```sql\n(.*?)^```$/gms)].map(([, sql = '']) => sql);

/** What the tools send by themselves, and the bar chart by week that each makes of the events `paid`, with what they get. */
const OF_TOOLS: readonly (readonly [sql: string, first: string])[] = [
  // Metabase, where weeks begin on Sunday and on Monday.
  [
    "SELECT (toMonday(`sluice_tools_acme`.`events`.`timestamp` + INTERVAL 1 day) + INTERVAL -1 day) AS `timestamp`, COUNT(*) AS `count` FROM `sluice_tools_acme`.`events` WHERE (`sluice_tools_acme`.`events`.`event` = 'paid') AND (`sluice_tools_acme`.`events`.`timestamp` >= parseDateTimeBestEffort('2026-03-01 00:00:00.000Z')) GROUP BY (toMonday(`sluice_tools_acme`.`events`.`timestamp` + INTERVAL 1 day) + INTERVAL -1 day) ORDER BY (toMonday(`sluice_tools_acme`.`events`.`timestamp` + INTERVAL 1 day) + INTERVAL -1 day) ASC",
    '2026-03-01 1 2026-03-08 2 ',
  ],
  [
    "SELECT toMonday(toTimeZone(`sluice_tools_acme`.`events`.`timestamp`, 'Europe/Berlin')) AS `timestamp`, SUM(1) AS `sum` FROM `sluice_tools_acme`.`events` WHERE `sluice_tools_acme`.`events`.`event` = 'paid' GROUP BY toMonday(toTimeZone(`sluice_tools_acme`.`events`.`timestamp`, 'Europe/Berlin')) ORDER BY `timestamp` ASC LIMIT 2000",
    '2026-03-02 1 2026-03-09 2 ',
  ],
  // Superset.
  [
    "SELECT toMonday(toDateTime(timestamp)) AS `__timestamp`, COUNT(*) AS `count` FROM `sluice_tools_acme`.`events` WHERE `timestamp` >= toDateTime('2026-03-01 00:00:00') AND `timestamp` < toDateTime('2026-04-01 00:00:00') AND `event` = 'paid' GROUP BY toMonday(toDateTime(timestamp)) ORDER BY `count` DESC LIMIT 10000",
    '2026-03-09 2 2026-03-02 1 ',
  ],
  [
    'SELECT max(length(name)) > 0 FROM (SELECT name FROM system.functions UNION ALL SELECT name FROM system.table_functions LIMIT 10000)',
    '1 ',
  ],
  // Grafana.
  [
    "SELECT toStartOfInterval(toDateTime(timestamp), INTERVAL 604800 second) AS time, count() AS events FROM events WHERE timestamp >= toDateTime64(1772323200000/1000, 3) AND timestamp <= toDateTime64(1774915200000/1000, 3) AND event = 'paid' GROUP BY time ORDER BY time",
    '2026-02-26 00:00:00 1 2026-03-05 00:00:00 2 ',
  ],
  [
    "SELECT database, name FROM system.tables WHERE database NOT IN ('system', 'INFORMATION_SCHEMA', 'information_schema') ORDER BY database, name",
    'sluice_tools_acme events sluice_tools_acme identities sluice_tools_acme memberships sluice_tools_acme organizations sluice_tools_acme users ',
  ],
  [
    "SELECT name, type, comment FROM system.columns WHERE (database, table) IN (('sluice_tools_acme', 'memberships')) ORDER BY position LIMIT 1",
    'user_id String The user ',
  ],
  ['SELECT DISTINCT event FROM sluice_tools_acme.events ORDER BY event SETTINGS max_execution_time=10', 'many paid '],
];

/** Expected of the statements of the guide, in their order. */
const GUIDE_RESULTS = [
  '2026-03-02 pro 9.5 2026-03-09 free 20 2026-03-09 pro 1 ',
  'org Jane 2026-03-02 ',
  expect.stringContaining('jane pro 9.5 '),
];

const OF_SESSION = /^(SET|USE) /;

/** The statements of the SQL door, with their kind and what they come to there. Those that only use time are below. */
const HOSTILE = Object.entries(HOSTILE_STATEMENTS)
  .filter(([kind]) => kind !== 'bombs')
  .flatMap(([kind, statements]) => statements.map(([outcome, sql]) => ({ kind, outcome, sql: ofThese(sql) })))
  .filter(({ sql }) => sql.trim() !== '' && !sql.includes('\0'))
  // JDBC remembers these for the statements that follow.
  .sort((a, b) => Number(OF_SESSION.test(a.sql)) - Number(OF_SESSION.test(b.sql)));

/** Returns a statement of the SQL door with the names of these databases and accounts. */
function ofThese(sql: string): string {
  return sql
    .replaceAll('test_sql_sql', 'sluice_sql')
    .replaceAll('test_sql', DATABASE)
    .replaceAll('TO sluice_sql', 'TO sluice_tools_acme');
}

/** Returns what a statement showed, with whole numbers and times as short as they can be: each driver has texts of its own. */
function shownOf({ first = '', error }: DriverResult['statements'][number]): string {
  return error ?? first.replaceAll(/(\d)\.0+ /g, '$1 ').replaceAll(/(?<=\d)T(\d\d:\d\d)(Z\[UTC\])? /g, ' $1:00 ');
}

/** What only an account that connects to ClickHouse itself can do, of what the SQL door refuses: to look at what is its own. */
const HARMLESS: ReadonlySet<string> = new Set([
  'SELECT * FROM system.tables',
  'SELECT * FROM system.one',
  'SELECT count() FROM events WHERE user_id IN (SELECT name FROM system.databases)',
  "SELECT * FROM merge('.*')",
  "SELECT * FROM viewIfPermitted(SELECT * FROM sluice.events ELSE null('a String'))",
  "SELECT * FROM generateRandom('a String') LIMIT 1",
  'SELECT * FROM fuzzJSON(\'{"a":1}\') LIMIT 1',
  "SELECT * FROM fuzzQuery('SELECT 1') LIMIT 1",
  "SELECT logTrace('x')",
  'SHOW TABLES',
  'SHOW GRANTS',
  'SHOW CREATE TABLE events',
  'DESCRIBE events',
  'DESCRIBE (SELECT 1)',
  'EXPLAIN SELECT * FROM events',
  'EXPLAIN ESTIMATE SELECT * FROM events',
  'EXPLAIN PLAN indexes = 1 SELECT * FROM events',
  'EXISTS TABLE events',
  'EXPLAIN AST SELECT 1',
  'SET ROLE ALL',
]);

/** The kinds of hostile statements that would reach something. The others tell about the server, or only use time. */
const REACHING: ReadonlySet<string> = new Set([
  ...['other tables', 'tables of the system', 'table functions', 'functions that read elsewhere'],
  'statements that are no SELECT',
]);

describe.each(driversToRun())('%s', (driver) => {
  let result: DriverResult;
  let outcomes: DriverResult['statements'];

  beforeAll(async () => {
    const many = ["SELECT user_id, timestamp, properties FROM events WHERE event = 'many'"];
    result = await runDriver(driver, world, guide, [
      ...OF_GUIDE,
      ...OF_TOOLS.map(([sql]) => sql),
      ...many,
      ...HOSTILE.map(({ sql }) => sql),
    ]);
    outcomes = result.statements;
  });

  test('shows the views of the workspace with their columns, types and comments, and no other database', () => {
    expect(result.schemas).toEqual([[world.acme.account]]);
    expect(result.tables).toEqual([
      ['events', 'What happened, each event once'],
      ['identities', 'Whose anonymous visitors are'],
      ['memberships', 'Which users belong to which organizations'],
      ['organizations', 'The organizations as they are now'],
      ['users', 'The users as they are now'],
    ]);
    expect(result.columns).toHaveLength(28);
    for (const [, , type, comment] of result.columns)
      expect([type, comment]).toEqual([expect.any(String), expect.stringMatching(/./)]);
    expect(result.columns).toContainEqual([
      'events',
      'timestamp',
      "DateTime64(3, 'UTC')",
      'When it happened; a condition on it makes a query cheap',
    ]);
    expect(result.columns).toContainEqual(['memberships', 'user_id', 'String', 'The user']);
  });

  test('reads values in their types and zones, and binds those of a prepared statement', () => {
    const values = JSON.stringify(result.values);
    for (const value of [
      /2026-03-02[T ]08:00:00\.123/,
      /[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/,
      /"paid"/,
      /"jane"/,
    ]) {
      expect(values).toMatch(value);
    }
    expect(values).toContain(JSON.stringify('{"plan":"pro","amount":9.5}'));
    expect(result.prepared).toEqual([['paid', expect.anything()]]);
    expect(String(result.prepared)).toBe('paid,1');
    expect(String(result.zone)).toBe('1');
    expect(result.own).toBe(OWN[driver]);
  });

  test('gets what the guide and the statements of the tools promise', () => {
    expect(outcomes.slice(0, OF_GUIDE.length).map(shownOf)).toEqual(GUIDE_RESULTS);
    const ofTools = outcomes.slice(OF_GUIDE.length, OF_GUIDE.length + OF_TOOLS.length);
    expect(ofTools.map(shownOf)).toEqual(OF_TOOLS.map(([, first]) => first));
  });

  test('reads many rows', () => {
    expect(outcomes[OF_GUIDE.length + OF_TOOLS.length]?.rows).toBe(MANY);
  });

  test('no hostile statement shows, reaches or changes anything', async () => {
    const ofHostile = outcomes.slice(-HOSTILE.length);
    const results = HOSTILE.map((hostile, index) => {
      const { first = '', error } = ofHostile[index] ?? {};
      return { ...hostile, first, error };
    });
    expect(results.filter(({ first, error }) => `${first}${error}`.includes(SECRET))).toEqual([]);
    // Nothing is evaluated on a row that the account may not see.
    const throwing = results.filter(
      ({ kind, outcome }) => kind.startsWith('expressions that throw') && outcome === 'own',
    );
    expect(throwing.filter(({ error }) => error !== undefined)).toEqual([]);
    const reached = results
      .filter(({ kind, outcome, error }) => REACHING.has(kind) && outcome !== 'own' && error === undefined)
      .map(({ sql }) => sql);
    expect(reached.filter((sql) => !HARMLESS.has(sql))).toEqual([]);
    expect(await world.asAdministrator(ALL_ROWS)).toBe(rowsBefore);
  });
});

/** Counts the rows of all workspaces. */
const ALL_ROWS = `SELECT (SELECT count() FROM events), (SELECT count() FROM entities), (SELECT count() FROM entity_properties),
  (SELECT count() FROM pending_deletions)`;

/** JDBC: the rows of a statement that is limited to three of them, which the older one does not heed. clickhouse-connect: a count by SQLAlchemy. */
const OWN: Readonly<Record<Driver, unknown>> = {
  JDBC: 3,
  'JDBC of Metabase': 1_000,
  'clickhouse-connect': 1,
};

test('tools set what they need, within bounds, and nothing else', async () => {
  const allowed = {
    ...{
      max_execution_time: '30',
      max_result_rows: '1000',
      max_result_bytes: '1000000',
      result_overflow_mode: 'break',
    },
    ...{ extremes: '1', join_use_nulls: '1', session_timezone: 'Europe/Berlin', limit: '5', readonly: '1' },
    ...{ select_sequential_consistency: '1', async_insert: '1', wait_end_of_query: '1' },
  };
  for (const [name, value] of Object.entries(allowed)) {
    expect(await ask('SELECT count() FROM users', { [name]: value }), name).toMatch(/^1(\s|$)/);
  }
  expect(await ask('SELECT number FROM numbers(100)', { max_result_rows: '3', result_overflow_mode: 'throw' })).toMatch(
    'TOO_MANY_ROWS_OR_BYTES',
  );
  for (const [name, value] of [
    ...[
      ['max_execution_time', '0'],
      ['max_execution_time', '301'],
      ['max_result_rows', '0'],
      ['max_result_rows', '1000001'],
    ],
    ...[
      ['max_result_bytes', '0'],
      ['max_result_bytes', '1000000001'],
    ],
  ] as const) {
    expect(await ask('SELECT 1', { [name]: value }), name).toMatch('SETTING_CONSTRAINT_VIOLATION');
  }
  for (const [name, value] of [
    ...[
      ['readonly', '0'],
      ['readonly', '2'],
      ['allow_ddl', '1'],
      ['allow_introspection_functions', '1'],
    ],
    ...[
      ['max_threads', '64'],
      ['max_memory_usage', '0'],
      ['max_memory_usage_for_user', '0'],
      ['max_bytes_to_read', '0'],
    ],
    ...[
      ['max_concurrent_queries_for_user', '0'],
      ['max_temporary_data_on_disk_size_for_user', '0'],
      ['priority', '0'],
    ],
    ...[
      ['use_skip_indexes', '1'],
      ['timeout_overflow_mode', 'break'],
    ],
    ...[
      ['additional_table_filters', "{'sluice.pending_deletions':'0'}"],
      ['enable_analyzer', '0'],
    ],
  ] as const) {
    expect(await ask('SELECT 1', { [name]: value }), name).toMatch(
      /READONLY|SETTING_CONSTRAINT_VIOLATION|QUERY_IS_PROHIBITED/,
    );
    const quoted = /^\d+$|^\{/.test(value) ? value : `'${value}'`;
    expect(await ask(`SELECT 1 SETTINGS ${name} = ${quoted}`), name).toMatch(
      /READONLY|SETTING_CONSTRAINT_VIOLATION|QUERY_IS_PROHIBITED/,
    );
  }
});

test('a statement ends at its limits, also where a sub-select lifts them', async () => {
  const lifted =
    'SETTINGS max_execution_time = 0, max_memory_usage = 0, max_memory_usage_for_user = 0, max_bytes_to_read = 0, readonly = 0';
  const slow = 'SELECT sum(sleepEachRow(0.00002)) FROM numbers(1000000)';
  for (const sql of [slow, `SELECT * FROM (${slow} ${lifted})`]) {
    expect(await ask(sql, { max_execution_time: '1' })).toMatch('TIMEOUT_EXCEEDED');
  }
  for (const [sql, outcome] of [
    ['SELECT length(groupArray(number)) FROM numbers(300000000)', /MEMORY_LIMIT_EXCEEDED/],
    ['SELECT count() FROM numbers(1000000000000000)', /TOO_MANY_BYTES|TOO_MANY_ROWS/],
    ['SELECT number FROM numbers(1000001)', /TOO_MANY_ROWS_OR_BYTES/],
  ] as const) {
    expect(await ask(`SELECT * FROM (${sql} ${lifted})`, { wait_end_of_query: '1' })).toMatch(outcome);
  }
});

/** Users, and what is in other rows, that no view shows. */
const HIDDEN = new RegExp(`gone|foreign|${SECRET}`);

/** What a statement may show of each view, in one row. */
const SHOWN = [
  'SELECT arraySort(groupUniqArray(user_id)), uniq(event), count() FROM events',
  'SELECT arraySort(groupUniqArray(user_id)), max(properties), count() FROM users',
  'SELECT arraySort(groupUniqArray(user_id)), count() FROM memberships',
  'SELECT arraySort(groupUniqArray(user_id)), arraySort(groupUniqArray(anonymous_id)), count() FROM identities',
  'SELECT arraySort(groupUniqArray(organization_id)), max(properties), count() FROM organizations',
];

/** Settings of a sub-select, which ClickHouse does not check against the account's, with what they come to. */
const OF_SUBSELECTS: readonly (readonly [settings: string, outcome: RegExp | undefined])[] = [
  ["additional_table_filters = {'sluice.pending_deletions': '0', 'sluice.retention': '0'}", undefined],
  ["additional_table_filters = {'sluice.events': 'throwIf(1)', 'sluice.entities': 'throwIf(1)'}", undefined],
  ['join_use_nulls = 1', undefined],
  [
    "enable_parallel_replicas = 1, max_parallel_replicas = 3, cluster_for_parallel_replicas = 'nowhere', parallel_replicas_for_non_replicated_merge_tree = 1",
    undefined,
  ],
  ["max_block_size = 1, max_rows_to_read = 1, read_overflow_mode = 'break'", /TOO_MANY_ROWS/],
  ["max_block_size = 1, max_rows_to_read_leaf = 1, read_overflow_mode_leaf = 'break'", /TOO_MANY_ROWS/],
  ["max_block_size = 1, max_rows_to_group_by = 1, group_by_overflow_mode = 'break'", /TOO_MANY_ROWS/],
  ["max_block_size = 1, max_rows_to_group_by = 1, group_by_overflow_mode = 'any'", /TOO_MANY_ROWS/],
  ["max_block_size = 1, max_rows_in_set = 1, set_overflow_mode = 'break'", /SET_SIZE_LIMIT_EXCEEDED/],
  ["max_block_size = 1, max_rows_to_sort = 1, sort_overflow_mode = 'break'", /TOO_MANY_ROWS/],
  ["max_block_size = 1, max_execution_time = 0.000001, timeout_overflow_mode = 'break'", /./],
];

test('no settings of a sub-select show what the views hide, or a part of it', async () => {
  for (const sql of SHOWN) {
    const expected = await ask(sql);
    expect(expected).not.toMatch(HIDDEN);
    for (const [settings, outcome] of OF_SUBSELECTS) {
      const shown = await ask(`SELECT * FROM (${sql} SETTINGS ${settings})`);
      expect.soft(shown, settings).not.toMatch(HIDDEN);
      // The other views have more or fewer steps to which a limit applies.
      if (sql.endsWith('FROM users')) expect.soft(shown, settings).toMatch(outcome ?? expected);
    }
  }
});

test('the plan of a statement names no deleted user, and does not tell which users others have', async () => {
  for (const view of ['events', 'users', 'organizations', 'memberships', 'identities']) {
    for (const explain of [
      'PLAN actions = 1, indexes = 1',
      'PLAN json = 1, actions = 1',
      'PIPELINE',
      'QUERY TREE',
      'ESTIMATE',
    ]) {
      const plan = await ask(`EXPLAIN ${explain} SELECT * FROM ${view}`);
      expect(plan, `${view} ${explain}`).not.toMatch(HIDDEN);
    }
  }
  const plan = async (user: string, settings = '') =>
    (
      await ask(`EXPLAIN indexes = 1 SELECT * FROM (SELECT count() FROM events WHERE user_id = '${user}' ${settings})`)
    ).replaceAll(user, '');
  for (const settings of ['', 'SETTINGS use_skip_indexes = 1']) {
    const unknown = await plan('nobody', settings);
    expect(unknown).toContain('Granules');
    expect(await plan('foreign-user', settings)).toBe(unknown);
    expect(await plan('gone', settings)).toBe(unknown);
  }
});

test('each account sees its own workspace, and nobody logs in as the owner of its views', async () => {
  const { other } = world;
  const database = other.account;
  expect(other.account).toMatch(/^sluice_tools_o_ther__[0-9a-f]{12}$/);
  expect(await ask('SELECT user_id FROM users', { database }, other)).toBe('foreign-user');
  expect(await ask('SELECT name FROM system.databases', { database }, other)).toBe(other.account);
  expect(await ask(`SELECT count() FROM ${other.account}.events`)).toMatch('ACCESS_DENIED');
  expect(await ask(`SHOW CREATE TABLE ${other.account}.events`)).toMatch('ACCESS_DENIED');
  for (const account of ['sluice_views_acme', 'sluice_tools_acme']) {
    expect(await ask('SELECT 1', {}, { account, password: 'guess' })).toMatch('AUTHENTICATION_FAILED');
  }
  for (const table of [
    'processes',
    'query_log',
    'users',
    'row_policies',
    'parts',
    'grants',
    'settings_profile_elements',
  ]) {
    expect(await ask(`SELECT * FROM system.${table}`), table).toMatch(/ACCESS_DENIED|UNKNOWN_TABLE/);
  }
  expect(await ask('KILL QUERY WHERE 1')).toMatch('ACCESS_DENIED');
});

interface Outcome {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs `sluice sql-account` as the administrator of a ClickHouse. */
function sqlAccount(args: readonly string[], url: string): Promise<Outcome> {
  const env = { ...inherited(), CLICKHOUSE_URL: url, CLICKHOUSE_DATABASE: DATABASE, ...ADMINISTRATOR };
  return new Promise((resolve) => {
    execFile(process.execPath, [programFile('sluice'), 'sql-account', ...args], { env }, (error, stdout, stderr) => {
      resolve({ code: error ? Number(error.code) : 0, stdout, stderr });
    });
  });
}

/**
 * Starts a ClickHouse that keeps accounts: the engine, which has parsed each statement about accounts before it is answered, and runs
 * all others.
 */
async function startKeeper() {
  const statements: string[] = [];
  const server = createServer(async (incoming, outgoing) => {
    const sql = await text(incoming);
    const isAboutAccounts = isOfAccounts(sql);
    if (isAboutAccounts) statements.push(sql);
    const { headers } = incoming;
    const response = await fetch(new URL(incoming.url ?? '/', world.clickhouse.url), {
      method: 'POST',
      body: isAboutAccounts ? `EXPLAIN AST ${sql}` : sql,
      headers: {
        authorization: String(headers.authorization ?? ''),
        'x-clickhouse-user': String(headers['x-clickhouse-user'] ?? ''),
      },
    });
    const code = response.headers.get('x-clickhouse-exception-code');
    outgoing.writeHead(response.status, code === null ? {} : { 'x-clickhouse-exception-code': code });
    outgoing.end(isAboutAccounts && response.ok ? '' : await response.text());
  });
  return { ...(await listening(server)), statements };
}

test('sluice sql-account lists, creates and removes accounts, and says where a ClickHouse keeps none', async () => {
  const { url } = world.clickhouse;
  const listed = await sqlAccount(['list'], url);
  expect(listed.stdout.split('\n').map((line) => line.split(/ +/))).toEqual([
    ['ACCOUNT', 'WORKSPACE'],
    ['sluice_tools_acme', 'acme'],
    [world.other.account, 'o.ther'],
    [''],
  ]);
  expect(await sqlAccount(['create', '--workspace', 'new'], url)).toEqual({
    ...{ code: 1, stdout: '' },
    stderr: expect.stringContaining('keeps accounts in files alone'),
  });

  await using folder = await makeTempDir();
  await using keeper = await startKeeper();
  const file = join(folder.path, 'password');
  const create = ['create', '--workspace', 'new'];
  const created = await sqlAccount([...create, '--password-file', file], keeper.url);
  expect(created).toEqual({
    ...{ code: 0, stderr: '' },
    stdout: `new: account and database sluice_tools_new\nIts password is in ${file}\n`,
  });
  expect((await stat(file)).mode & 0o777).toBe(0o600);
  const password = (await readFile(file, 'utf8')).trim();
  expect(password).toMatch(/^[\w-]{32}$/);
  // A file is never overwritten.
  expect(await sqlAccount([...create, '--password-file', file], keeper.url)).toMatchObject({ code: 2 });
  const printed = await sqlAccount([...create, '--print'], 'http://127.0.0.1:1');
  const statements = printed.stdout.trim().replace(/;$/, '').split(/;\n\n/);
  const withoutHashes = (sql: string) => sql.replaceAll(/[0-9a-f]{64}/g, '');
  expect(keeper.statements.map(withoutHashes)).toEqual(statements.filter(isOfAccounts).map(withoutHashes));
  expect(await world.asAdministrator("SELECT count() FROM system.tables WHERE database = 'sluice_tools_new'")).toBe(
    '5',
  );

  // One that exists keeps its password.
  keeper.statements.length = 0;
  const again = await sqlAccount(['create', '--workspace', 'acme'], keeper.url);
  expect(again.stdout).toBe('acme: account and database sluice_tools_acme. It keeps its password.\n');
  expect(keeper.statements.join()).not.toContain('USER `sluice_tools_acme`');
  const renewed = await sqlAccount(['create', '--workspace', 'acme', '--new-password'], keeper.url);
  expect(renewed.stdout).toMatch(/The password, which is shown only this once: [\w-]{32}\n$/);
  expect(keeper.statements.join()).toContain('ALTER USER `sluice_tools_acme` IDENTIFIED');

  keeper.statements.length = 0;
  expect(await sqlAccount(['delete', '--workspace', 'new'], keeper.url)).toMatchObject({ code: 1 });
  expect(keeper.statements).toEqual([
    'DROP USER IF EXISTS `sluice_tools_new`',
    'DROP SETTINGS PROFILE IF EXISTS `sluice_tools_new`',
    'DROP USER IF EXISTS `sluice_views_new`',
    ...['events', 'entities', 'entity_properties', 'identity_links', 'pending_deletions', 'retention'].map(
      (table) => `DROP ROW POLICY IF EXISTS \`sluice_views_new\` ON \`sluice\`.${table}`,
    ),
  ]);
  expect(await world.asAdministrator("SELECT count() FROM system.databases WHERE name = 'sluice_tools_new'")).toBe('0');
});
