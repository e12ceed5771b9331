// What reading several servers by `remote()` rests on (docs/design/decisions/0059-reading-shards.md).
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type LocalClickHouse, startClickHouse } from '@sluice/local-stack/clickhouse';
import { type NativeRelay, startNativeRelay } from '@sluice/local-stack/native-relay';
import { type ClickHouseClient, createClickHouse } from '@sluice/shared/clickhouse/client';
import { CONTRARY_SETTINGS } from '@sluice/shared/clickhouse/testing/contrary-settings';
import { mergeParts } from '@sluice/shared/clickhouse/testing/merge-parts';
import { ADMINISTRATOR, QUERY_ACCOUNT, TEST_ACCOUNTS } from '@sluice/shared/clickhouse/testing/test-accounts';
import { createDatabase } from '@sluice/shared/clickhouse/testing/test-database';
import { type ClickHouseConfig, loadConfig } from '@sluice/shared/config';
import { eventHash, eventHashSql } from '@sluice/shared/rows/row-hashes';
import { eventually } from '@sluice/shared/testing/eventually';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { configSchema } from '../config.ts';
import { COUNT_SETTINGS, type QuerySettings, querySettings, SEVERAL_SERVERS_SETTINGS } from './query-settings.ts';
import { exceptionIn } from './read-failures.ts';
import type { Sql } from './sql.ts';
import { parameterTexts, queryStringOf, settingsClause } from './statement-request.ts';
import { tablesOfServers } from './tables.ts';

const DATABASE = 'test_servers';
/** All rows on one server. */
const SINGLE = 'test_single';
const WORKSPACE = 'a';
const PARTITIONS = 48;
/** Of the first server are the partitions before this one. */
const FIRST_OF_SECOND = 32;
const EVENTS = 60_000;
const USER = QUERY_ACCOUNT.CLICKHOUSE_USER;
const PASSWORD = QUERY_ACCOUNT.CLICKHOUSE_PASSWORD;
const RIGHTS = ['GRANT READ ON REMOTE', 'GRANT CREATE TEMPORARY TABLE ON *.*'];
/** Every character that could end a literal. */
const ODD_PASSWORD = `it's \\ "odd" \\' ü\`$ {p:String}`;

const started = new AsyncDisposableStack();
let first: LocalClickHouse;
let second: LocalClickHouse;
let relay: NativeRelay;
let admins: readonly [ClickHouseClient, ClickHouseClient];
let settings: QuerySettings;
let dataDir: string;
/** A server knows its own address: it reads its own rows without a connection. The engine knows it by its missing port. */
let addresses: string;

beforeAll(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'sluice-servers-'));
  started.defer(() => rm(dataDir, { recursive: true, force: true }));
  const start = async (name: string, rights: readonly string[], profile: Readonly<Record<string, string>>) => {
    const accounts = { ...TEST_ACCOUNTS, added: { ...TEST_ACCOUNTS.added, sluice_query: rights } };
    const usersFiles = { 'more.xml': moreUsers() };
    const options = { dataDir: join(dataDir, name), name, accounts, usersFiles, profile, queryLog: true };
    const server = await startClickHouse({ ...options, memoryBytesMax: 2 * 1_024 ** 3 });
    started.defer(() => server.kill9());
    return server;
  };
  // Whoever is read by another server needs neither right, and its account may have any settings.
  [first, second] = await Promise.all([start('first', RIGHTS, {}), start('second', [], CONTRARY_SETTINGS)]);
  relay = await startNativeRelay(second.tcpPort);
  started.defer(() => relay.stop());
  addresses = `127.0.0.1,127.0.0.1:${relay.port}`;
  admins = [clientOf(first, ADMINISTRATOR), clientOf(second, ADMINISTRATOR)];
  for (const admin of admins) started.defer(() => admin.close());
  const config = loadConfig(configSchema, { CLICKHOUSE_URL: first.url, API_KEYS_FILE: 'none', QUERY_THREADS_MAX: '2' });
  settings = querySettings(config);
  for (const { url } of [first, second]) await createDatabase(url, DATABASE);
  await createDatabase(first.url, SINGLE);
  await store(admins[0], SINGLE, 0, PARTITIONS);
  await store(admins[0], DATABASE, 0, FIRST_OF_SECOND);
  await store(admins[1], DATABASE, FIRST_OF_SECOND, PARTITIONS);
  await admins[0].command({ query: 'CREATE DATABASE not_ours' });
  await admins[0].command({ query: 'CREATE TABLE not_ours.t (n Int8) ENGINE = Memory' });
});
afterAll(() => started.disposeAsync());

/** Besides the accounts of the services: one with an odd password, and those of a person and of what it reads. */
function moreUsers(): string {
  const user = (name: string, password: string, profile: string, grants: readonly string[]) =>
    `<${name}><password><![CDATA[${password}]]></password><profile>${profile}</profile><quota>default</quota>` +
    `<networks><ip>127.0.0.1</ip></networks>` +
    `<grants>${grants.map((grant) => `<query>${grant}</query>`).join('')}</grants></${name}>`;
  return `<clickhouse><profiles><person><readonly>1</readonly></person></profiles><users>
${user('odd', ODD_PASSWORD, 'default', [`GRANT SELECT ON ${DATABASE}.events`])}
${user('owner', 'of the owner', 'default', [`GRANT SELECT ON ${DATABASE}.events`])}
${user('person', 'of a person', 'person', ['GRANT SELECT ON dashboards.*'])}
</users></clickhouse>`;
}

function clientOf(
  { url }: LocalClickHouse,
  account: Pick<ClickHouseConfig, 'CLICKHOUSE_USER' | 'CLICKHOUSE_PASSWORD'>,
) {
  const config = { CLICKHOUSE_URL: url, CLICKHOUSE_DATABASE: DATABASE, ...account };
  return createClickHouse(config, { application: 'test', requestTimeoutMs: 600_000, connectionsMax: 4 });
}

/** Stores those of the events whose partition is in a range; on each server the same event is the same row. */
async function store(client: ClickHouseClient, database: string, from: number, before: number): Promise<void> {
  await client.command({
    query: `INSERT INTO ${database}.events
        (workspace_id, timestamp, uuid, event, user_id, properties, received_at)
      SELECT
        {workspace:String},
        toDateTime64('2026-03-01', 3, 'UTC') + toIntervalSecond(number * 60) AS time,
        reinterpretAsUUID(sipHash128(number)) AS id,
        concat('event ', toString(number % 3)),
        concat('user ', toString(sipHash64(number) % 2000)),
        '{"plan":"pro"}',
        time
      FROM numbers({events:UInt64})
      WHERE CRC32(toString(id)) % {partitions:UInt32} BETWEEN {from:UInt32} AND {before:UInt32} - 1`,
    query_params: { workspace: WORKSPACE, events: EVENTS, partitions: PARTITIONS, from, before },
    clickhouse_settings: { max_insert_block_size: '1000000', max_partitions_per_insert_block: '0' },
  });
  await using merging = createClickHouse(
    { CLICKHOUSE_URL: client === admins[0] ? first.url : second.url, CLICKHOUSE_DATABASE: database, ...ADMINISTRATOR },
    { application: 'test', requestTimeoutMs: 600_000, connectionsMax: 1 },
  );
  await mergeParts(merging, 'events');
}

/** The tables of both servers, as query-api names them. Of their parameters, each test has its own values. */
const TABLES = tablesOfServers({
  ...{ addresses: [], tls: false, database: DATABASE, user: USER, password: PASSWORD },
  serverOfPartition: Array.from({ length: PARTITIONS }, (_, partition) => (partition < FIRST_OF_SECOND ? 0 : 1)),
});

/** The events of all servers. Everything in it is a parameter, also the login. */
const EVERYWHERE = TABLES.events;

/** The same, for the outermost FROM alone: of a uuid it tells the server. */
const BY_UUID = TABLES.eventsByUuid;

/** The events of the one server that has all of them. */
const ALONE = `(SELECT * FROM ${SINGLE}.events WHERE workspace_id = {workspace:String})`;

interface Read {
  readonly rows: unknown[][];
  /** How many rows all servers read. */
  readonly rowsRead: number;
}

interface ReadOptions {
  readonly params?: Sql['params'];
  readonly settings?: QuerySettings;
  readonly signal?: AbortSignal;
  /** Sends the settings in the address alone. */
  readonly inAddressAlone?: boolean;
}

/** Sends a statement to the first server and returns its response. */
async function send(sql: string, options: ReadOptions = {}): Promise<string> {
  const all = { ...settings, ...SEVERAL_SERVERS_SETTINGS, ...options.settings };
  const params = {
    ...TABLES.params,
    ...{ addresses, workspace: WORKSPACE },
    ...options.params,
  };
  // Not in the address: at its level "trace", which is the default, the server logs that.
  const form = new FormData();
  for (const [name, value] of parameterTexts(params)) form.append(name, value);
  form.append('query', options.inAddressAlone ? sql : `${sql} ${settingsClause(all)}`);
  const response = await fetch(`${first.url}/?${queryStringOf({ ...all, default_format: 'JSONCompact' })}`, {
    method: 'POST',
    body: form,
    headers: { authorization: `Basic ${btoa(`${USER}:${PASSWORD}`)}` },
    signal: options.signal ?? null,
  });
  return response.text();
}

async function read(sql: string, options?: ReadOptions): Promise<Read> {
  const text = await send(sql, options);
  const exception = exceptionIn(text);
  if (exception) throw exception;
  const { data, statistics } = JSON.parse(text) as {
    readonly data: unknown[][];
    readonly statistics: { readonly rows_read: number };
  };
  return { rows: data, rowsRead: statistics.rows_read };
}

/** Returns ClickHouse's name of the error that a statement fails with. */
async function errorOf(sql: string, options?: ReadOptions): Promise<unknown> {
  try {
    return await read(sql, options);
  } catch (error) {
    return /\(([A-Z0-9_]+)\) \(version/.exec((error as Error).message)?.[1] ?? error;
  }
}

const COUNT = `SELECT count() FROM ${EVERYWHERE}`;

test('readonly 1 refuses remote(), and readonly 2 allows it', async () => {
  expect(await errorOf(COUNT, { settings: { readonly: '1' } })).toBe('READONLY');
  expect((await read(COUNT)).rows).toEqual([[EVENTS]]);
});

test('an account without the two rights cannot use remote()', async () => {
  await using client = clientOf(second, QUERY_ACCOUNT);
  const sql = `SELECT count() FROM remote('127.0.0.1:${first.tcpPort}', ${DATABASE}.events, '${USER}', '${PASSWORD}')`;
  await expect(client.query({ query: sql })).rejects.toMatchObject({ type: 'ACCESS_DENIED' });
});

test.each([
  `INSERT INTO ${DATABASE}.events (workspace_id) VALUES ('x')`,
  `INSERT INTO FUNCTION remote('127.0.0.1', ${DATABASE}.events, 'x', 'x') (workspace_id) VALUES ('x')`,
  `ALTER TABLE ${DATABASE}.events DELETE WHERE 1`,
  `DELETE FROM ${DATABASE}.events WHERE 1`,
  `TRUNCATE TABLE ${DATABASE}.events`,
  `CREATE TABLE ${DATABASE}.t (n Int8) ENGINE = Memory`,
  `CREATE VIEW ${DATABASE}.v AS SELECT 1`,
  'CREATE DATABASE test_other',
  'CREATE FUNCTION f AS x -> x',
  'CREATE NAMED COLLECTION c AS a = 1',
  'CREATE TEMPORARY TABLE t (n Int8) ENGINE = Memory',
  'SELECT * FROM not_ours.t',
  'SELECT * FROM system.users',
  'SELECT * FROM system.processes',
  'SELECT * FROM system.named_collections',
  `SELECT * FROM file('t.csv', 'CSV')`,
  `SELECT * FROM url('http://127.0.0.1/', 'CSV')`,
  `BACKUP TABLE ${DATABASE}.events TO File('x')`,
  'KILL QUERY WHERE 1',
])('with these rights and readonly 2, the account still cannot: %s', async (sql) => {
  await using client = clientOf(first, QUERY_ACCOUNT);
  const run = client.command({ query: sql, clickhouse_settings: { ...settings, ...SEVERAL_SERVERS_SETTINGS } });
  await expect(run).rejects.toMatchObject({ type: 'ACCESS_DENIED' });
});

test('readonly 2 changes neither readonly itself nor a limit of the account', async () => {
  await using client = clientOf(first, QUERY_ACCOUNT);
  const withSetting = (setting: string) =>
    client.command({ query: `SELECT 1 SETTINGS ${setting}`, clickhouse_settings: { readonly: '2' } });
  await expect(withSetting('readonly = 0')).rejects.toMatchObject({ type: 'READONLY' });
  await expect(withSetting('allow_ddl = 1')).rejects.toMatchObject({ type: 'QUERY_IS_PROHIBITED' });
  await expect(withSetting('max_memory_usage = 17179869185')).rejects.toMatchObject({
    type: 'SETTING_CONSTRAINT_VIOLATION',
  });
});

/** Returns everything that a server has logged. */
async function logged(server: LocalClickHouse, name: string): Promise<string> {
  await using admin = clientOf(server, ADMINISTRATOR);
  await admin.command({ query: 'SYSTEM FLUSH LOGS' });
  const log = await admin.query({ query: 'SELECT * FROM system.query_log', format: 'JSONEachRow' });
  return (await log.text()) + (await readFile(join(dataDir, name, `${name}.log`), 'utf8'));
}

test('the password is in no log, whatever fails', async () => {
  expect(await errorOf(`${COUNT} GRUP BY 1`)).toBe('SYNTAX_ERROR');
  expect(await errorOf(`SELECT {missing:String} FROM ${EVERYWHERE}`)).toBe('UNKNOWN_QUERY_PARAMETER');
  expect(await errorOf(`SELECT nothing FROM ${EVERYWHERE}`)).toBe('UNKNOWN_IDENTIFIER');
  expect(await errorOf(`SELECT throwIf(1) FROM ${EVERYWHERE}`)).toBe('FUNCTION_THROW_IF_VALUE_IS_NON_ZERO');
  expect(await send(`SELECT nothing FROM ${EVERYWHERE}`)).toContain('[HIDDEN]');
  const servers = [
    [first, 'first'],
    [second, 'second'],
  ] as const;
  for (const [server, name] of servers) {
    const text = await logged(server, name);
    expect(text).toContain('throwIf');
    expect(text).not.toContain(PASSWORD);
  }
});

test('a password may have any character', async () => {
  const params = { addresses: `127.0.0.1:${relay.port}`, remote_user: 'odd', remote_password: ODD_PASSWORD };
  expect((await read(`SELECT count() > 0 FROM ${EVERYWHERE}`, { params })).rows).toEqual([[1]]);
});

test('servers are numbered in the order of their addresses', async () => {
  const partition = `${eventHashSql('uuid')} % ${PARTITIONS}`;
  const sql = `SELECT shardNum() AS server, min(${partition}), max(${partition}) FROM ${EVERYWHERE} GROUP BY server ORDER BY server`;
  expect((await read(sql)).rows).toEqual([
    [1, 0, FIRST_OF_SECOND - 1],
    [2, FIRST_OF_SECOND, PARTITIONS - 1],
  ]);
  const reversed = addresses.split(',').reverse().join(',');
  expect((await read(sql, { params: { addresses: reversed } })).rows).toEqual([
    [1, FIRST_OF_SECOND, PARTITIONS - 1],
    [2, 0, FIRST_OF_SECOND - 1],
  ]);
});

/** Of each server, some uuids and no others. */
async function someUuids(): Promise<readonly [readonly string[], readonly string[]]> {
  const { rows } = await read(`SELECT toString(uuid) FROM ${EVERYWHERE} ORDER BY timestamp LIMIT 30`);
  const uuids = rows.map(([uuid]) => String(uuid));
  const isOfSecond = (uuid: string) => eventHash(uuid) % PARTITIONS >= FIRST_OF_SECOND;
  return [uuids.filter((uuid) => !isOfSecond(uuid)), uuids.filter(isOfSecond)];
}

test('of the server that does not have a uuid nothing is read, whatever the ranges', async () => {
  const [ofFirst, ofSecond] = await someUuids();
  expect([ofFirst.length > 5, ofSecond.length > 5]).toEqual([true, true]);
  const find = (ids: readonly string[]) =>
    read(`SELECT DISTINCT shardNum() FROM ${BY_UUID} WHERE uuid IN {ids:Array(UUID)}`, { params: { ids } });
  for (const uuid of ofFirst) expect((await find([uuid])).rows).toEqual([[1]]);
  for (const uuid of ofSecond) expect((await find([uuid])).rows).toEqual([[2]]);
  const melt = relay.freeze();
  try {
    for (const uuid of ofFirst) expect((await find([uuid])).rows).toEqual([[1]]);
  } finally {
    melt();
  }
});

const NEWEST = 'ORDER BY timestamp DESC, toUInt128(uuid) DESC LIMIT 101';
const DAY = 'toStartOfInterval(timestamp, toIntervalMillisecond(86400000))';

/** What is asked of all events, and how many times the rows of one server all servers may read for it. */
const QUESTIONS: readonly (readonly [
  name: string,
  ask: (events: string) => string,
  times: number,
  settings: QuerySettings,
])[] = [
  ['the newest page', (events) => `SELECT uuid, properties FROM ${events} ${NEWEST}`, 2, {}],
  ['a page of one user', (events) => `SELECT uuid FROM ${events} WHERE user_id = 'user 7' ${NEWEST}`, 2, {}],
  ['a count by an index', (events) => `SELECT count() FROM ${events} WHERE user_id = 'user 7'`, 2, COUNT_SETTINGS],
  [
    'counts by day, of a projection',
    (events) => `SELECT ${DAY} AS day, event, count() FROM ${events} GROUP BY day, event ORDER BY day, event`,
    2,
    { force_optimize_projection: '1' },
  ],
  [
    'distinct users',
    (events) => `SELECT event, uniqExact(user_id) FROM ${events} GROUP BY event ORDER BY event`,
    1.1,
    {},
  ],
  [
    'a condition on all servers',
    (events) => `SELECT uuid FROM ${events}
      WHERE user_id GLOBAL IN (SELECT user_id FROM ${events} WHERE event = 'event 0' AND user_id < 'user 11')
      ${NEWEST}`,
    2,
    {},
  ],
  [
    'a join of all servers',
    (events) => `SELECT count() FROM ${events} AS a
      GLOBAL INNER JOIN (SELECT user_id, min(timestamp) AS first FROM ${events} GROUP BY user_id) AS b USING (user_id)
      WHERE a.timestamp = b.first`,
    1.1,
    {},
  ],
];

test.each(QUESTIONS)('servers answer as one server does, and read no more than it: %s', async (_, ask, times, more) => {
  const options = { settings: more };
  const alone = await read(ask(ALONE), options);
  const everywhere = await read(ask(EVERYWHERE), options);
  expect(alone.rows.length).toBeGreaterThan(0);
  expect(everywhere.rows).toEqual(alone.rows);
  expect(everywhere.rowsRead).toBeLessThanOrEqual(times * alone.rowsRead + 2_000);
});

test('a sub-select that does not say GLOBAL is run again by each server, whatever the settings say', async () => {
  const global = { prefer_global_in_and_join: '1', distributed_product_mode: 'global' };
  const sql = `SELECT count() FROM ${EVERYWHERE} WHERE user_id IN (SELECT user_id FROM ${EVERYWHERE})`;
  // The second server's account may not read others.
  expect(await errorOf(sql, { settings: global })).toBe('ACCESS_DENIED');
  expect((await read(sql.replace(' IN ', ' GLOBAL IN '))).rows).toEqual([[EVENTS]]);
});

test('each server reads a page in the order of its table, by its indexes, and its large columns last', async () => {
  const { rows } = await read(
    `EXPLAIN indexes = 1, distributed = 1 SELECT uuid, properties FROM ${EVERYWHERE} WHERE user_id = 'user 7' ${NEWEST}`,
  );
  const plan = rows.flat().join('\n');
  for (const step of ['LazilyReadFromMergeTree', 'Name: user_id_text', 'preliminary LIMIT (with OFFSET)']) {
    expect([step, plan.split(step).length - 1]).toEqual([step, 2]);
  }
});

test('a setting that is the default of the first server reaches the others in the statement alone', async () => {
  // The profile of the second server sets max_subquery_depth to 1.
  expect(await errorOf(COUNT, { inAddressAlone: true })).toBe('TOO_DEEP_RECURSION');
  expect((await read(COUNT)).rows).toEqual([[EVENTS]]);
});

test('the limits of a statement hold at each server, and the sum of what all read at the first one', async () => {
  const sql = `SELECT uniqExact(user_id) FROM ${EVERYWHERE}`;
  const share = EVENTS / PARTITIONS;
  expect(await errorOf(sql, { settings: { max_rows_to_read: String(40 * share) } })).toBe('TOO_MANY_ROWS');
  const ofSecond = { params: { addresses: `127.0.0.1:${relay.port}` } };
  for (const limit of [{ max_rows_to_read: '100' }, { max_bytes_to_read: '100' }]) {
    const error = errorOf(sql, { ...ofSecond, settings: limit });
    expect(await error).toBe(Object.keys(limit)[0] === 'max_rows_to_read' ? 'TOO_MANY_ROWS' : 'TOO_MANY_BYTES');
  }
  const large = `SELECT length(groupArray(repeat(user_id, 1000))) FROM ${EVERYWHERE}`;
  expect(await errorOf(large, { ...ofSecond, settings: { max_memory_usage: '20000000' } })).toBe(
    'MEMORY_LIMIT_EXCEEDED',
  );
  // A statement that fails leaves the servers as they were.
  expect((await read(COUNT)).rows).toEqual([[EVENTS]]);
});

/** A statement that takes at least ten seconds at each server. */
const SLOW = `SELECT count() FROM ${EVERYWHERE} WHERE sleepEachRow(0.01) = 0`;
const SLOW_SETTINGS = { settings: { max_block_size: '100' } };

/** How many statements of the service run at a server. */
async function running(admin: ClickHouseClient): Promise<number> {
  const sql = `SELECT count() AS running FROM system.processes WHERE user = {user:String} AND query LIKE '%sleepEachRow%'`;
  const result = await admin.query({ query: sql, query_params: { user: USER }, format: 'JSONEachRow' });
  return (await result.json<{ running: number }>())[0]?.running ?? Number.NaN;
}

const runningAtBoth = () => Promise.all(admins.map(running));

test('a client that leaves ends the statement at each server', async () => {
  const leaving = new AbortController();
  const slow = errorOf(SLOW, { ...SLOW_SETTINGS, signal: leaving.signal });
  await eventually(runningAtBoth).toEqual([1, 1]);
  leaving.abort();
  await slow;
  await eventually(runningAtBoth).toEqual([0, 0]);
});

test('a server that is frozen fails the statement, before its start and in its midst', async () => {
  const melt = relay.freeze();
  try {
    const error = await send(COUNT);
    expect(error).toContain('ALL_CONNECTION_TRIES_FAILED');
    // Tried once.
    expect(error.match(/receive timeout 3000 ms/g)).toHaveLength(1);
  } finally {
    melt();
  }
  const slow = send(SLOW, SLOW_SETTINGS);
  await eventually(runningAtBoth).toEqual([1, 1]);
  const meltAgain = relay.freeze();
  try {
    expect(await slow).toMatch(/receive timeout 3000 ms.*SOCKET_TIMEOUT/s);
  } finally {
    meltAgain();
  }
  await eventually(runningAtBoth).toEqual([0, 0]);
});

test('an account of a person reads all servers by a table, in readonly 1 and with no right but that to the table', async () => {
  for (const admin of admins) {
    await admin.command({ query: 'CREATE DATABASE dashboards' });
    await admin.command({
      query: `CREATE VIEW dashboards.events_of_server DEFINER = owner SQL SECURITY DEFINER AS
        SELECT timestamp, event FROM ${DATABASE}.events WHERE workspace_id = '${WORKSPACE}'`,
    });
  }
  const account = "'person', 'of a person'";
  await admins[0].command({
    query: `CREATE TABLE dashboards.events AS remote('${addresses}', dashboards.events_of_server, ${account})`,
  });
  const ask = async (sql: string) => {
    const headers = { authorization: `Basic ${btoa('person:of a person')}` };
    return (await fetch(first.url, { method: 'POST', body: `${sql} FORMAT TSVRaw`, headers })).text();
  };
  expect(await ask('SELECT count() FROM dashboards.events')).toBe(`${EVENTS}\n`);
  const definitions = `${await ask('SHOW CREATE TABLE dashboards.events')}${await ask('SELECT * FROM system.tables')}`;
  expect(definitions).toContain('[HIDDEN]');
  expect(definitions).not.toContain('of a person');
  expect(await ask(`SELECT count() FROM remote('127.0.0.1:${relay.port}', ${DATABASE}.events)`)).toContain(
    'ACCESS_DENIED',
  );
  // Each server counts its own rows.
  const plan = await ask('EXPLAIN distributed = 1 SELECT event, count() FROM dashboards.events GROUP BY event');
  expect(plan.match(/ Aggregating$/gm)).toHaveLength(2);
});

/** The connection to a server broke. */
const LOST = /^(ATTEMPT_TO_READ_AFTER_EOF|NETWORK_ERROR)$/;

test('a server that is killed fails the statement in its midst, and any later one that needs it', async () => {
  const slow = errorOf(SLOW, SLOW_SETTINGS);
  await eventually(runningAtBoth).toEqual([1, 1]);
  await second.kill9();
  expect(await slow).toMatch(LOST);
  await relay.stop();
  expect(await errorOf(COUNT)).toMatch(/^(ALL_CONNECTION_TRIES_FAILED|NETWORK_ERROR)$/);
});
