import { randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import { platform } from 'node:os';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { HOSTILE_STATEMENTS } from '../testing/hostile-sql.ts';
import { anEvent, aRegister } from '../testing/query-service.ts';
import { addOwnFunction, askEngine, errorsOf, expectRefusedAs, outcomeOf } from '../testing/refused-functions.ts';
import { SPELLINGS } from '../testing/spelled-functions.ts';
import { SQL_ACCOUNT, type SqlService, startSql } from '../testing/sql-service.ts';
import { isAllowedFunction, isAllowedTableFunction } from './allowed-functions.ts';

/** In every value that the workspace may not see. No statement has it. */
const NONCE = randomUUID();

const NOW = Date.now();
const DAY_MS = 86_400_000;
const MICROSECONDS = 1_000;

let service: SqlService;

beforeAll(async () => {
  service = await startSql({
    // A bomb ends soon.
    ...{ QUERY_TIMEOUT_MS: '3000', QUERY_MEMORY_BYTES_MAX: '200000000', SQL_RESULT_ROWS_MAX: '10000' },
  });
  const stored = { timestampMs: NOW, receivedAtUs: NOW * MICROSECONDS };
  await service.store('a', [
    anEvent({ ...stored, userId: 'jane', groupId: 'acme', properties: '{"plan":"pro"}' }),
    anEvent({
      ...stored,
      userId: 'gone',
      event: `deleted-secret-${NONCE}`,
      properties: `{"s":"deleted-secret-${NONCE}"}`,
    }),
    anEvent({ timestampMs: NOW - 40 * DAY_MS, event: 'old', properties: `{"s":"expired-secret-${NONCE}"}` }),
  ]);
  await service.store('b', [
    anEvent({
      ...{ ...stored, userId: 'foreign-user', groupId: 'foreign-group', event: `foreign-secret-${NONCE}` },
      properties: `{"s":"foreign-secret-${NONCE}"}`,
    }),
  ]);
  const seen = { first_seen_at: NOW, last_seen_at: NOW };
  await service.insert('entities', [
    { workspace_id: 'a', kind: 'user', id: 'jane', ...seen, version: 1_000 },
    { workspace_id: 'a', kind: 'user', id: 'gone', first_seen_at: 0, last_seen_at: 0, version: 1_000 },
    // Came back: its writer did not know the deletion.
    { workspace_id: 'a', kind: 'user', id: 'back', first_seen_at: 0, last_seen_at: NOW, version: NOW * MICROSECONDS },
    { workspace_id: 'a', kind: 'organization', id: 'acme', ...seen, version: 1_000 },
    { workspace_id: 'b', kind: 'user', id: 'foreign-user', first_seen_at: 0, last_seen_at: 0, version: 1_000 },
    { workspace_id: 'b', kind: 'organization', id: 'foreign-group', ...seen, version: 1_000 },
  ]);
  const deleted = `"deleted-secret-${NONCE}"`;
  const foreign = `"foreign-secret-${NONCE}"`;
  await service.insert('entity_properties', [
    { workspace_id: 'a', kind: 'user', id: 'jane', property: 'plan', register: aRegister(1_000, 'set', '"pro"') },
    { workspace_id: 'a', kind: 'user', id: 'jane', property: 'old', register: aRegister(1_000, 'remove', '""') },
    { workspace_id: 'a', kind: 'user', id: 'gone', property: 'old', register: aRegister(1_000, 'set', deleted) },
    { workspace_id: 'a', kind: 'user', id: 'back', property: 'old', register: aRegister(1_000, 'set', deleted) },
    {
      ...{ workspace_id: 'a', kind: 'user', id: 'back', property: 'new' },
      register: aRegister(NOW * MICROSECONDS, 'set', '{"a":[1]}'),
    },
    { workspace_id: 'a', kind: 'organization', id: 'acme', property: 'a"b', register: aRegister(1_000, 'set', '7') },
    {
      workspace_id: 'b',
      kind: 'user',
      id: 'foreign-user',
      property: 'old',
      register: aRegister(1_000, 'set', foreign),
    },
    {
      workspace_id: 'b',
      kind: 'organization',
      id: 'foreign-group',
      property: 's',
      register: aRegister(1_000, 'set', foreign),
    },
  ]);
  const version = NOW * MICROSECONDS + 1;
  await service.insert('pending_deletions', [
    { workspace_id: 'a', user_id: 'gone', version, stored_at: NOW },
    { workspace_id: 'a', user_id: 'back', version: 2_000, stored_at: NOW },
  ]);
  await service.insert('retention', [{ workspace_id: 'a', days: 30 }]);
});
afterAll(() => service.stop());

/** Of those that take what they may, the first has too many rows; the others run at night. */
const { bombs = [], ...OTHERS } = HOSTILE_STATEMENTS;

describe.each([...Object.entries(OTHERS), ['a bomb', bombs.slice(0, 1)] as const])('%s', (_, statements) => {
  test('each statement is refused, or has rows of the workspace alone', async () => {
    const outcomes: string[] = [];
    for (const [, sql] of statements) {
      const { outcome, text } = await outcomeOf(service, sql);
      outcomes.push(`${outcome}: ${sql}`);
      expect(text, sql).not.toContain(NONCE);
      expect(text, sql).not.toContain('root:');
    }
    expect(outcomes).toEqual(statements.map(([outcome, sql]) => `${outcome}: ${sql}`));
  });
});

test('after all of them the workspaces have their rows', async () => {
  expect(await service.rows('SELECT user_id, event FROM events')).toEqual([{ user_id: 'jane', event: 'e' }]);
  expect(await service.rows('SELECT user_id FROM events', 'b')).toEqual([{ user_id: 'foreign-user' }]);
  expect(existsSync('/tmp/sluice-outfile')).toBe(false);
});

test('users have their current properties, and those who came back nothing from before', async () => {
  const users =
    'SELECT user_id, properties, first_seen_at < now() - INTERVAL 1 YEAR AS old FROM users ORDER BY user_id';
  expect(await service.rows(users)).toEqual([
    { user_id: 'back', properties: '{"new":{"a":[1]}}', old: 0 },
    { user_id: 'jane', properties: '{"plan":"pro"}', old: 0 },
  ]);
  expect(await service.rows('SELECT organization_id, properties FROM organizations')).toEqual([
    { organization_id: 'acme', properties: '{"a\\"b":7}' },
  ]);
  expect(await service.rows('SELECT user_id FROM users', 'b')).toEqual([{ user_id: 'foreign-user' }]);
});

describe('parameters', () => {
  test.each([
    ['a table', 'SELECT * FROM {t:Identifier}', { t: 'system.processes' }, 'not_allowed'],
    ['a table of others', 'SELECT * FROM {t:Identifier}', { t: 'test_sql.events' }, 'not_allowed'],
    ['a view', 'SELECT count() FROM {t:Identifier}', { t: 'events' }, 'own'],
    ['a table behind IN', 'SELECT 1 IN {t:Identifier}', { t: 'system.users' }, 'not_allowed'],
    ['a function', "SELECT {f:Identifier}('/etc/passwd')", { f: 'file' }, 'invalid'],
    ['a quote', 'SELECT {s:String} AS s', { s: "' OR 1; DROP TABLE x --" }, 'own'],
    ['a statement', 'SELECT * FROM ({s:String})', { s: 'SELECT * FROM test_sql.events' }, 'invalid'],
    ['a value of another type', 'SELECT {n:UInt8}', { n: 'x' }, 'invalid'],
    ['none', 'SELECT {n:UInt8}', {}, 'invalid'],
    ['a setting', 'SELECT 1', { 'x&max_execution_time=0': '1' }, 'malformed'],
    ['a name with a break', 'SELECT 1', { 'x\r\nX-Sluice-Workspace: b': '1' }, 'malformed'],
  ])('%s', async (_, sql, params, expected) => {
    const { outcome, text } = await outcomeOf(service, sql, params);
    expect([outcome, text]).toEqual([expected, expect.not.stringContaining(NONCE)]);
  });

  test('values arrive as they are', async () => {
    const values = ['it\'s \\ \t\n " ` {a:String}', '🙂', ''];
    const sql =
      'SELECT {text:String} AS text, {list:Array(String)} AS list, {n:Float64} AS n, {big:UInt64} AS big, {yes:Bool} AS yes';
    const params = { text: values[0], list: values, n: -1.5, big: '18446744073709551615', yes: true };
    const { text } = await service.post({ sql, params, format: 'csv' });
    expect(text.split('\n')[0]).toBe('"text","list","n","big","yes"');
    const [row] = JSON.parse((await service.post({ sql, params: { ...params, big: 7 } })).text).data;
    expect(row).toEqual({ ...params, big: 7 });
  });
});

/** Returns parameters of one value. */
function numbered(count: number, value: unknown = 1): Readonly<Record<string, unknown>> {
  return Object.fromEntries(Array.from({ length: count }, (_, index) => [`p${index}`, value]));
}

test('a statement and parameters at their limits are run', async () => {
  const sql = `SELECT 1 AS one -- ${'x'.repeat(131_053)}`;
  expect(sql).toHaveLength(131_072);
  expect(await outcomeOf(service, sql, numbered(50))).toMatchObject({ outcome: 'own' });
  expect((await outcomeOf(service, 'SELECT length({a:String}) AS n', { a: 'x'.repeat(32_768) })).text).toBe(
    '{"n":32768}\n',
  );
});

test.each([
  ['nested parentheses', `SELECT ${'('.repeat(20_000)}1${')'.repeat(20_000)}`],
  ['nested functions', `SELECT ${'abs('.repeat(5_000)}1${')'.repeat(5_000)}`],
  ['nested sub-selects', `${'SELECT * FROM ('.repeat(400)}SELECT 1${')'.repeat(400)}`],
  ['many columns', `SELECT ${Array.from({ length: 20_000 }, (_, index) => index).join()}`],
  ['many unions', Array.from({ length: 5_000 }, () => 'SELECT 1').join(' UNION ALL ')],
  [
    'an alias of an alias',
    `WITH 1 AS a0, ${Array.from({ length: 40 }, (_, i) => `a${i} + a${i} AS a${i + 1}`).join()} SELECT a40`,
  ],
])('%s are an error at most', async (_, sql) => {
  expect(['own', 'invalid', 'expensive', 'malformed']).toContain((await outcomeOf(service, sql)).outcome);
});

test.each([
  ['a body of 10 MB', JSON.stringify({ sql: `SELECT '${'x'.repeat(10_000_000)}'` }), 413, 'body_too_large'],
  ['a statement of 200 kB', JSON.stringify({ sql: `SELECT '${'x'.repeat(200_000)}'` }), 400, 'invalid_request'],
  [
    'invalid UTF-8',
    Buffer.from([...Buffer.from('{"sql":"SELECT \''), 0xff, 0xfe, ...Buffer.from('\'"}')]),
    400,
    'malformed_json',
  ],
  ['no JSON', 'SELECT 1', 400, 'malformed_json'],
  ['an array', '[]', 400, 'invalid_request'],
  ['another member', '{"sql":"SELECT 1","settings":{"readonly":0}}', 400, 'invalid_request'],
  ['another format', '{"sql":"SELECT 1","format":"Native"}', 400, 'invalid_request'],
  ['an object as a parameter', '{"sql":"SELECT 1","params":{"a":{}}}', 400, 'invalid_request'],
])('%s is refused', async (_, body, status, code) => {
  const response = await service.post(body);
  expect([response.status, JSON.parse(response.text).code]).toEqual([status, code]);
});

describe('of all functions that the engine knows', () => {
  beforeAll(() => addOwnFunction(service));

  test.each(Object.keys(SPELLINGS))('one that is not on the list is refused as %s', (spelling) =>
    expectRefusedAs(service, spelling),
  );

  test('no table function but those that read nothing is read', async () => {
    const known = await askEngine(service, 'SELECT name FROM system.table_functions');
    // These two take a statement: others are errors of syntax.
    const refused = known.filter((name) => !isAllowedTableFunction(name) && !/^view(IfPermitted)?$/.test(name));
    expect(refused.length).toBeGreaterThan(50);
    const errors = await Promise.all(
      refused.map((name) => errorsOf(service, `SELECT * FROM \`${name}\`('/etc/passwd')`)),
    );
    expect(refused.filter((name, index) => !errors[index]?.includes(`${name}, which is not allowed`))).toEqual([]);
  });

  test('no aggregate function gets on the list by a combinator', async () => {
    const combinators = await askEngine(service, 'SELECT name FROM system.aggregate_function_combinators');
    expect(combinators.length).toBeGreaterThan(10);
    expect(combinators.filter((name) => isAllowedFunction(`estimateCompressionRatio${name}`))).toEqual([]);
  });
});

test('where the system can limit that, the engine opens no file but its own, whatever it is asked', async () => {
  const paths = [fileURLToPath(import.meta.url), '/etc/passwd'];
  const others = platform() === 'linux' ? [...paths, `/proc/${process.pid}/environ`] : paths;
  for (const path of others) {
    const response = await fetch(service.clickHouseUrl, { method: 'POST', body: `SELECT file('${path}')` });
    const text = await response.text();
    expect([path, /^Code: .*denied/.test(text)]).toEqual([path, platform() === 'linux']);
  }
});

describe('the account itself', () => {
  async function ask(sql: string, headers: Readonly<Record<string, string>> = {}): Promise<string> {
    const response = await fetch(`${service.clickHouseUrl}/?database=test_sql_sql`, {
      method: 'POST',
      body: sql,
      headers: {
        'x-clickhouse-user': SQL_ACCOUNT.CLICKHOUSE_SQL_USER,
        'x-clickhouse-key': SQL_ACCOUNT.CLICKHOUSE_SQL_PASSWORD,
        ...headers,
      },
    });
    return (await response.text()).trim();
  }
  const OF_A = { 'x-sluice-workspace': 'a', 'x-sluice-deletions': 'some', 'x-sluice-kept-from': 'all' };

  test('reads nothing without the headers of query-api', async () => {
    expect(await ask('SELECT count() FROM events', OF_A)).toBe('2');
    expect(await ask('SELECT count() FROM events')).toBe('0');
    expect(await ask('SELECT count() FROM users')).toBe('0');
    expect(await ask('SELECT count() FROM organizations')).toBe('0');
    const { 'x-sluice-kept-from': _, ...withoutRetention } = OF_A;
    expect(await ask('SELECT count() FROM events', withoutRetention)).toBe('0');
    const { 'x-sluice-deletions': __, ...withoutDeletions } = OF_A;
    expect(await ask("SELECT count() FROM events WHERE user_id = 'gone'", withoutDeletions)).toBe('0');
  });

  test('hides what another server has deleted', async () => {
    const users = Buffer.from(JSON.stringify([['jane', 9_000_000_000_000_000]])).toString('base64');
    const headers = { ...OF_A, 'x-sluice-deleted-users': users };
    expect(await ask("SELECT count() FROM events WHERE user_id = 'jane'", headers)).toBe('0');
    expect(await ask('SELECT groupArray(user_id) FROM users', headers)).toBe("['back']");
    expect(await ask('SELECT count() FROM organizations', headers)).toBe('1');
  });

  test.each([
    ['SELECT * FROM test_sql.events', /ACCESS_DENIED/],
    ['SELECT * FROM test_sql.pending_deletions', /ACCESS_DENIED/],
    ["SELECT * FROM mergeTreeIndex('test_sql', 'events')", /ACCESS_DENIED/],
    ["SELECT * FROM merge('test_sql', '.*')", /CANNOT_EXTRACT_TABLE_STRUCTURE|ACCESS_DENIED/],
    ["SELECT * FROM remote('127.0.0.1', 'test_sql', 'events')", /ACCESS_DENIED/],
    ["SELECT * FROM url('http://127.0.0.1:1/', 'CSV', 'a String')", /ACCESS_DENIED/],
    ["SELECT * FROM executable('x', 'TSV', 'a String')", /ACCESS_DENIED/],
    ['SELECT * FROM system.processes', /ACCESS_DENIED/],
    ['SELECT * FROM system.users', /ACCESS_DENIED/],
    ["INSERT INTO events (event) VALUES ('x')", /READONLY|ACCESS_DENIED|NOT_IMPLEMENTED/],
    ['CREATE TABLE t (a UInt8) ENGINE = Memory', /ACCESS_DENIED|READONLY|QUERY_IS_PROHIBITED/],
    ['DROP TABLE test_sql.events', /ACCESS_DENIED|READONLY|QUERY_IS_PROHIBITED/],
    ['SELECT 1 SETTINGS max_ast_depth = 5', /READONLY/],
    ['SELECT 1 SETTINGS max_execution_time = 601', /SETTING_CONSTRAINT_VIOLATION/],
    ['SELECT 1 SETTINGS max_memory_usage = 17179869185', /SETTING_CONSTRAINT_VIOLATION/],
    ["SELECT getClientHTTPHeader('Authorization')", /FUNCTION_NOT_ALLOWED/],
  ])('is refused %s', async (sql, error) => {
    expect(await ask(sql, OF_A)).toMatch(error);
  });

  test('cannot log in without its password, and its views cannot be read as their owner', async () => {
    expect(await ask('SELECT 1', { 'x-clickhouse-key': 'wrong' })).toMatch(/AUTHENTICATION_FAILED/);
    expect(await ask('SELECT 1', { 'x-clickhouse-user': 'sluice_sql_owner', 'x-clickhouse-key': '' })).toMatch(
      /AUTHENTICATION_FAILED/,
    );
  });
});
