import { randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import type { ClickHouseClient } from '@clickhouse/client';
import { statementsOf } from '@sluice/local-stack/clickhouse-accounts';
import { findFreePorts } from '@sluice/local-stack/ports';
import { makeTempDir } from '@sluice/local-stack/testing/temp-dir';
import { createLogger } from '@sluice/shared/base/log';
import { createClickHouse } from '@sluice/shared/clickhouse/client';
import { type Migration, migrate, readMigrations, TablesLost } from '@sluice/shared/clickhouse/migrate';
import {
  ADMINISTRATOR,
  MIGRATE_ACCOUNT,
  QUERY_ACCOUNT,
  TEST_ACCOUNTS,
  WRITER_ACCOUNT,
} from '@sluice/shared/clickhouse/testing/test-accounts';
import { createDatabase, type TestDatabase } from '@sluice/shared/clickhouse/testing/test-database';
import { writeKeysFile } from '@sluice/shared/keys/keys-file';
import { eventually } from '@sluice/shared/testing/eventually';
import { afterAll, beforeAll, describe, expect, inject, onTestFinished, test } from 'vitest';
import { ownClickHouse } from '../kit/engines.ts';
import { startService } from '../kit/service.ts';

// What the accounts of deploy/clickhouse/accounts.sql may not do. That they may do what the services need, all other
// tests show: their services log in with them.

/** A database whose name the accounts have no rights for. */
const FOREIGN = `foreign_${randomUUID().replaceAll('-', '')}`;

let database: TestDatabase;
let administrator: ClickHouseClient;
const clients: ClickHouseClient[] = [];

beforeAll(async () => {
  database = await createDatabase(inject('clickhouseUrl'));
  administrator = connect(ADMINISTRATOR);
  await administrator.command({ query: `CREATE DATABASE ${FOREIGN}` });
  await administrator.command({ query: `CREATE TABLE ${FOREIGN}.t (n UInt64) ENGINE = MergeTree ORDER BY n` });
});
afterAll(async () => {
  await administrator.command({ query: `DROP DATABASE ${FOREIGN} SYNC` });
  await Promise.all(clients.map((client) => client.close()));
  await database.release();
});

function connect(account: Partial<TestDatabase['config']>) {
  const options = { application: 'test', requestTimeoutMs: 240_000, connectionsMax: 2 };
  const client = createClickHouse({ ...database.config, ...account }, options);
  clients.push(client);
  return client;
}

/** What none of the accounts may do. */
const REFUSED_TO_ALL = [
  'DROP TABLE events',
  'DROP DATABASE {database:Identifier}',
  'TRUNCATE TABLE events',
  'RENAME TABLE events TO other',
  'OPTIMIZE TABLE events',
  'SYSTEM STOP MERGES events',
  `SELECT * FROM ${FOREIGN}.t`,
  `INSERT INTO ${FOREIGN}.t VALUES (1)`,
  `CREATE TABLE ${FOREIGN}.other (n UInt64) ENGINE = MergeTree ORDER BY n`,
  `ALTER TABLE ${FOREIGN}.t DELETE WHERE 1`,
  `CREATE DATABASE ${FOREIGN}_other`,
  'CREATE USER another',
  'GRANT SELECT ON *.* TO sluice_query',
  'CREATE FUNCTION f AS (x) -> x',
  "SELECT * FROM url('http://127.0.0.1:1/', 'CSV', 'a String')",
  "SELECT * FROM file('/etc/passwd', 'LineAsString', 'a String')",
  "INSERT INTO FUNCTION remote('127.0.0.1:1', 'default', 't') VALUES (1)",
  "SELECT * FROM s3('http://127.0.0.1:1/bucket/file', 'CSV', 'a String')",
  "INSERT INTO FUNCTION url('http://127.0.0.1:1/', 'CSV', 'a String') VALUES ('a')",
  'SELECT * FROM system.grants',
  'SELECT * FROM system.clusters',
  'SELECT * FROM system.users',
] as const;

const REFUSED = {
  sluice_migrate: [
    'ALTER TABLE events DELETE WHERE 1',
    "ALTER TABLE events UPDATE event = 'x' WHERE 1",
    'ALTER TABLE events DROP PARTITION 202603',
    'CREATE TEMPORARY TABLE t (n UInt64) ENGINE = Memory',
    "CREATE TABLE pulled (a String) ENGINE = URL('http://127.0.0.1:1/', 'CSV')",
  ],
  sluice_writer: [
    'CREATE TABLE other (n UInt64) ENGINE = MergeTree ORDER BY n',
    'CREATE VIEW v AS SELECT 1',
    'ALTER TABLE events ADD COLUMN other String',
    'ALTER TABLE events DROP COLUMN properties',
    'ALTER TABLE dead_letters MODIFY TTL toDateTime(recorded_at) + INTERVAL 1 DAY',
    'ALTER TABLE events FREEZE',
    "ALTER TABLE events FETCH PARTITION 202603 FROM '/a'",
    "BACKUP TABLE events TO File('/tmp/backup')",
    "SELECT * FROM remote('127.0.0.1:1', 'default', 't')",
  ],
  // Here it has its rights for all tables (clickhouse-accounts.ts).
  sluice_webhooks: [
    'ALTER TABLE webhooks ADD COLUMN other String',
    "ALTER TABLE webhooks UPDATE secret = '' WHERE 1",
    'CREATE TABLE other (n UInt64) ENGINE = MergeTree ORDER BY n',
    'CREATE TEMPORARY TABLE t (n UInt64) ENGINE = Memory',
    'SELECT * FROM system.processes',
    "BACKUP TABLE events TO File('/tmp/backup')",
    "SELECT * FROM remote('127.0.0.1:1', 'default', 't')",
  ],
  sluice_query: [
    'INSERT INTO schema_migrations (number) VALUES (1)',
    'ALTER TABLE events DELETE WHERE 1',
    'DELETE FROM events WHERE 1',
    'CREATE TABLE other (n UInt64) ENGINE = MergeTree ORDER BY n',
    'CREATE TEMPORARY TABLE t (n UInt64) ENGINE = Memory',
    "KILL QUERY WHERE query_id = 'x' SYNC",
    'KILL MUTATION WHERE 1',
    'SELECT * FROM system.processes',
    'SELECT * FROM system.parts',
    "BACKUP TABLE events TO File('/tmp/backup')",
    "SELECT * FROM remote('127.0.0.1:1', 'default', 't')",
  ],
} as const;

describe.each(Object.keys(REFUSED) as (keyof typeof REFUSED)[])('%s', (user) => {
  const account = { CLICKHOUSE_USER: user, CLICKHOUSE_PASSWORD: TEST_ACCOUNTS.passwords[user] };

  test('is refused what is not its work, and is told which right is missing', async () => {
    const client = connect(account);
    const query_params = { database: database.config.CLICKHOUSE_DATABASE };
    const allowed: string[] = [];
    for (const query of [...REFUSED_TO_ALL, ...REFUSED[user]]) {
      const error = await client.command({ query, query_params }).then(
        () => 'allowed',
        (refusal: { readonly type?: string; readonly message: string }) => `${refusal.type}: ${refusal.message}`,
      );
      // A profile without DDL refuses it before rights are looked at.
      const isRefused = /^ACCESS_DENIED: .*(grant|privileges)|^QUERY_IS_PROHIBITED/s.test(error);
      if (!isRefused) allowed.push(`${query}: ${error}`);
    }
    expect(allowed).toEqual([]);
  });

  test('is refused with a wrong password, and without one', async () => {
    for (const password of ['', 'wrong']) {
      const refused = connect({ ...account, CLICKHOUSE_PASSWORD: password }).command({ query: 'SELECT 1' });
      await expect(refused).rejects.toMatchObject({ type: 'AUTHENTICATION_FAILED' });
    }
  });
});

// In an engine for tests, where accounts have many databases, they see all tables (clickhouse-accounts.ts).
describe('in one database', () => {
  const name = 'sluice';
  const started = new AsyncDisposableStack();
  let one: TestDatabase;

  beforeAll(async () => {
    const engine = started.use(
      await ownClickHouse({ accounts: { passwords: TEST_ACCOUNTS.passwords, databases: name } }),
    );
    one = await createDatabase(engine.url, name);
  });
  afterAll(() => started.disposeAsync());

  test('sluice_webhooks alone reads the secrets of webhooks, and no other table than its own', async () => {
    const outcomes = async (user: keyof typeof TEST_ACCOUNTS.passwords, statements: readonly string[]) => {
      const login = { CLICKHOUSE_USER: user, CLICKHOUSE_PASSWORD: TEST_ACCOUNTS.passwords[user] };
      const client = connect({ ...one.config, ...login });
      return await Promise.all(
        statements.map(async (query) => {
          const outcome = await client.command({ query }).then(
            () => 'done',
            (error: { readonly type?: string }) => error.type,
          );
          return `${query}: ${outcome}`;
        }),
      );
    };
    const secrets = 'SELECT secret FROM webhooks';
    const own = [
      ...[secrets, "INSERT INTO webhooks (workspace_id) VALUES ('a')", 'DELETE FROM webhook_states WHERE 0'],
      ...['SELECT * FROM console_documents', "INSERT INTO console_documents (workspace_id) VALUES ('a')"],
      'DELETE FROM console_documents WHERE 0',
    ];
    const others = ['SELECT * FROM events', 'DELETE FROM events WHERE 0'];
    expect(await outcomes('sluice_webhooks', [...own, ...others])).toEqual([
      ...own.map((query) => `${query}: done`),
      ...others.map((query) => `${query}: ACCESS_DENIED`),
    ]);
    const allowed = 'SELECT * FROM webhook_states';
    for (const user of ['sluice_query', 'sluice_writer'] as const) {
      expect(await outcomes(user, [allowed, secrets, 'DELETE FROM webhooks WHERE 0'])).toEqual([
        `${allowed}: done`,
        `${secrets}: ACCESS_DENIED`,
        expect.stringMatching(/ACCESS_DENIED|QUERY_IS_PROHIBITED/),
      ]);
    }
  });

  test('sluice_migrate reads no other server before it gets the right for several', async () => {
    const CLICKHOUSE_PASSWORD = TEST_ACCOUNTS.passwords.sluice_migrate;
    const client = connect({ ...one.config, CLICKHOUSE_USER: 'sluice_migrate', CLICKHOUSE_PASSWORD });
    const query = "SELECT * FROM remote('127.0.0.1:1', 'default', 't')";
    await expect(client.command({ query })).rejects.toMatchObject({ type: 'ACCESS_DENIED' });
  });

  test('a table that an account may not see is not lost, also while the tables are created, and a lost one is found', async () => {
    const logger = createLogger('test', 'silent');
    const asQuery = { ...one.config, ...QUERY_ACCOUNT };
    const all = await readMigrations();
    // The writer has created all tables since query-api looked.
    expect(await migrate(asQuery, logger)).toEqual([]);
    const next = { ...all[0], number: all.length + 1, name: 'next.sql' } as Migration;
    await expect(migrate(asQuery, logger, [...all, next])).rejects.toThrow('Not enough privileges');

    const owner = connect({ ...one.config, ...ADMINISTRATOR });
    const outsider = connect({ ...one.config, ...ADMINISTRATOR, CLICKHOUSE_DATABASE: 'default' });
    const refusals = new Set<string>();
    let looks = 0;
    for (let round = 0; round < 2; round += 1) {
      await outsider.command({ query: `DROP DATABASE ${name} SYNC` });
      let isCreating = true;
      const watch = async (login: object) => {
        while (isCreating) {
          looks += 1;
          await migrate({ ...one.config, ...login }, logger).catch((error) => refusals.add(error.constructor.name));
        }
      };
      const watching = [QUERY_ACCOUNT, QUERY_ACCOUNT, WRITER_ACCOUNT].map(watch);
      await migrate({ ...one.config, ...WRITER_ACCOUNT }, logger);
      await owner.command({ query: "INSERT INTO writer_groups (group_id) VALUES ('g')" });
      isCreating = false;
      await Promise.all(watching);
    }
    expect(looks).toBeGreaterThan(2);
    expect([...refusals]).not.toContain(TablesLost.name);

    await owner.command({ query: 'DROP TABLE console_documents SYNC' });
    for (const account of [WRITER_ACCOUNT, ADMINISTRATOR]) {
      const lost = migrate({ ...one.config, ...account }, logger);
      await expect(lost).rejects.toThrow('the database sluice has lost tables (console_documents)');
    }
  });
});

test('the limits of sluice_query hold whatever a query asks for', async () => {
  const client = connect(QUERY_ACCOUNT);
  const run = async (settings: Readonly<Record<string, string>>) =>
    await client.command({ query: 'SELECT 1', clickhouse_settings: settings });
  await run({ max_memory_usage: '17179869184', readonly: '1', max_execution_time: '0', max_bytes_to_read: '0' });
  for (const max_memory_usage of ['17179869185', '0']) {
    await expect(run({ max_memory_usage })).rejects.toMatchObject({ type: 'SETTING_CONSTRAINT_VIOLATION' });
  }
  await expect(run({ allow_ddl: '1' })).rejects.toThrow('allow_ddl');
  await expect(run({ allow_introspection_functions: '1' })).rejects.toThrow('allow_introspection_functions');
});

test('sluice_writer ends its own statements, and no others', async () => {
  const client = connect(WRITER_ACCOUNT);
  const query = 'SELECT sleepEachRow(0.1) FROM numbers(3000) SETTINGS max_block_size = 1';
  const [own, other] = [randomUUID(), randomUUID()];
  const running = [
    connect(WRITER_ACCOUNT).command({ query, query_id: own }),
    connect(QUERY_ACCOUNT).command({ query, query_id: other }),
  ].map((statement) => statement.then(() => 'ended by itself', String));
  const processes = async () => {
    const sql = 'SELECT query_id FROM system.processes WHERE query_id IN {ids:Array(String)} ORDER BY query_id';
    const result = await administrator.query({
      query: sql,
      query_params: { ids: [own, other] },
      format: 'JSONEachRow',
    });
    return (await result.json<{ query_id: string }>()).map(({ query_id }) => query_id);
  };
  await eventually(processes).toEqual([own, other].sort());
  const kill = (id: string) =>
    client.command({ query: 'KILL QUERY WHERE query_id = {id:String} SYNC', query_params: { id } });
  await expect(kill(other)).rejects.toMatchObject({ type: 'ACCESS_DENIED' });
  await kill(own);
  expect(await running[0]).not.toBe('ended by itself');
  expect(await processes()).toEqual([other]);
  await administrator.command({ query: `KILL QUERY WHERE query_id = '${other}' SYNC` });
  await running[1];
});

test('sluice_migrate makes a backup, which can be restored into a new database, and sluice_writer reads what its metrics show', async () => {
  const backedUp = await createDatabase(inject('clickhouseUrl'));
  onTestFinished(() => backedUp.release());
  const CLICKHOUSE_PASSWORD = TEST_ACCOUNTS.passwords.sluice_migrate;
  const client = connect({ CLICKHOUSE_USER: 'sluice_migrate', CLICKHOUSE_PASSWORD });
  const name = backedUp.config.CLICKHOUSE_DATABASE;
  await administrator.command({ query: `INSERT INTO ${name}.writer_groups (group_id) VALUES ('kept')` });
  // A backup in memory belongs to its session.
  const session_id = randomUUID();
  await client.command({ query: `BACKUP DATABASE ${name} TO Memory('b')`, session_id });
  await administrator.command({ query: `DROP DATABASE ${name} SYNC` });
  await client.command({ query: `RESTORE DATABASE ${name} FROM Memory('b')`, session_id });
  const result = await client.query({ query: `SELECT group_id FROM ${name}.writer_groups`, format: 'JSONEachRow' });
  expect(await result.json()).toEqual([{ group_id: 'kept' }]);
  await client.command({ query: 'SELECT * FROM system.backups' });
  const writer = connect(WRITER_ACCOUNT);
  for (const table of ['disks', 'parts', 'mutations', 'merge_tree_settings']) {
    await writer.command({ query: `SELECT * FROM system.${table} LIMIT 1` });
  }
});

test('a service whose account lacks a right says in its log what to grant', async () => {
  const [writerPort = 0, queryPort = 0] = await findFreePorts(2);
  await using folder = await makeTempDir();
  const keysFile = `${folder.path}/keys.json`;
  await writeKeysFile(keysFile, []);
  const { CLICKHOUSE_URL, CLICKHOUSE_DATABASE } = database.config;
  const writer = startService('writer', writerPort, {
    ...{ CLICKHOUSE_URL, CLICKHOUSE_DATABASE },
    // It may read alone.
    ...{ ...QUERY_ACCOUNT, ...MIGRATE_ACCOUNT },
    ...{ KAFKA_BROKERS: inject('kafkaBrokers').join(','), KAFKA_TOPIC_PREFIX: 'accounts.', KAFKA_PARTITIONS: '1' },
  });
  onTestFinished(() => writer.kill9());
  const query = startService('query-api', queryPort, {
    ...{ CLICKHOUSE_URL, CLICKHOUSE_DATABASE: FOREIGN, API_KEYS_FILE: keysFile },
    ...QUERY_ACCOUNT,
  });
  onTestFinished(() => query.kill9());
  await eventually(async () => writer.log()).toMatch(
    /necessary to have the grant INSERT\(group_id\) ON \w+\.writer_groups/,
  );
  await eventually(async () => query.log()).toMatch(/necessary to have the grant .*waiting for the writer/);
  for (const { log } of [writer, query]) expect(log()).not.toContain(QUERY_ACCOUNT.CLICKHOUSE_PASSWORD);
});

test('ClickHouse takes every statement of the script, with its parameters', async () => {
  const hash = 'a'.repeat(64);
  const query_params = {
    database: database.config.CLICKHOUSE_DATABASE,
    ...{ migrate_password_sha256: hash, writer_password_sha256: hash, query_password_sha256: hash },
    webhooks_password_sha256: hash,
  };
  const script = await readFile(new URL('../../deploy/clickhouse/accounts.sql', import.meta.url), 'utf8');
  for (const query of statementsOf(script)) {
    const outcome = await administrator.command({ query, query_params }).then(
      () => 'done',
      (error: { readonly type?: string; readonly message: string }) => `${error.type}: ${error.message}`,
    );
    // The accounts of this engine are in a file, which statements cannot change.
    expect(outcome, query).toMatch(/^(done$|ACCESS_STORAGE_READONLY|ACCESS_STORAGE_FOR_INSERTION_NOT_FOUND)/);
  }
});
