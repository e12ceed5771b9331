import { join } from 'node:path';
import { parseBackupLocation } from '@sluice/cli/backup/backup-location';
import { type BackupConfig, backupConfig } from '@sluice/cli/backup/config';
import { clientOf } from '@sluice/cli/backup/connect';
import { recordBackup } from '@sluice/cli/backup/manifest';
import { dropDatabase, HalfReplaced, RestoredReplicas, syncReplica } from '@sluice/cli/backup/replicas';
import { Restore, type RestoreSummary } from '@sluice/cli/backup/run-restore';
import { makeTempDir } from '@sluice/local-stack/testing/temp-dir';
import { createLogger } from '@sluice/shared/base/log';
import type { ClickHouseClient } from '@sluice/shared/clickhouse/client';
import { migrate, readMigrations } from '@sluice/shared/clickhouse/migrate';
import { loadConfig } from '@sluice/shared/config';
import { Refused } from '@sluice/shared/config/command-line';
import { createKafka } from '@sluice/shared/kafka/client';
import { topicNames } from '@sluice/shared/kafka/topics';
import { eventually } from '@sluice/shared/testing/eventually';
import { until } from '@sluice/shared/testing/until';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { RESTORE_ACCOUNT, restoreAccountXml, sluice } from '../kit/backups.ts';
import { readClickHouse } from '../kit/clickhouse.ts';
import { type Pipeline, startPipeline } from '../kit/pipeline.ts';
import { type Replicas, startReplicas } from '../kit/replicas.ts';

// The tests of this file restore one backup again and again, while something happens at a chosen statement. Each leaves a whole database.

type Name = 'r1' | 'r2';

/** Is called before each statement of a restore at a replica; what it throws is the statement's failure. */
type Before = (at: Name, statement: string, parameters: Readonly<Record<string, unknown>>) => Promise<unknown>;

const DATABASE = 'test_replicarestores';
const PASSWORD = 'password-of-restore';
const EVENTS = 40;
const READ_ONLY =
  'SELECT max(is_readonly OR is_session_expired) FROM system.replicas WHERE database = currentDatabase()';
const NAMES = ['r1', 'r2'] as const;
const started = new AsyncDisposableStack();
let replicas: Replicas<Name>;
let running: Pipeline;
let place: string;

beforeAll(async () => {
  const backups = started.use(await makeTempDir());
  const account = (name: string) => ({ name, password: PASSWORD });
  const usersFiles = {
    'restore.xml': await restoreAccountXml(DATABASE, account('sluice_restore')),
    'lacking.xml': await restoreAccountXml(DATABASE, { ...account('sluice_lacking'), lacks: 'ALTER DELETE' }),
  };
  replicas = started.use(await startReplicas(NAMES, { backupDir: backups.path, usersFiles }));
  const { r1, r2 } = replicas.servers;
  running = started.use(
    await startPipeline({
      kafkaBrokers: inject('kafkaBrokers'),
      clickhouseUrl: r1.url,
      name: 'replicarestores',
      database: DATABASE,
      servers: { r1: { url: r1.url }, r2: { url: r2.url } },
      env: { CLICKHOUSE_REPLICATION: 'replicated' },
    }),
  );
  const events = Array.from({ length: EVENTS }, () => ({ event: 'visit' }));
  await running.submit({ foreignUserGroupId: 'g', foreignUserId: 'ann', events });
  await running.drained();
  place = join(backups.path, 'monday');
  expect(await sluice(running, ['backup', '--server', 'r1', '--to', place])).toMatchObject({ code: 0 });
  for (const writer of Object.values(running.writers)) await writer.stop();
});
afterAll(() => started.disposeAsync());

const read = (at: Name, sql: string, database = running.database) =>
  readClickHouse(replicas.servers[at].url, sql, { database });

function configOf(at: Name): BackupConfig {
  const { environment } = running;
  const env = { ...environment, ...RESTORE_ACCOUNT, CLICKHOUSE_SERVERS_FILE: '', CLICKHOUSE_SERVER: '' };
  return loadConfig(backupConfig, { ...env, CLICKHOUSE_URL: replicas.servers[at].url });
}

function connect(at: Name, database: string, before: Before): ClickHouseClient {
  const client = clientOf(configOf(at), 'test', database);
  started.defer(() => client.close());
  const hooked = (method: 'command' | 'query' | 'exec') => async (call: { query: string; query_params?: object }) => {
    await before(at, call.query, { ...call.query_params });
    return await client[method](call as never);
  };
  const calls = { command: hooked('command'), query: hooked('query'), exec: hooked('exec') };
  return Object.assign(Object.create(client), calls) as ClickHouseClient;
}

/** Restores the backup through a replica. */
async function restore(before: Before = async () => undefined, own: Name = 'r1'): Promise<RestoreSummary> {
  const config = configOf(own);
  const all = [own, ...NAMES.filter((name) => name !== own)].map((name) => ({
    ...{ name, config: configOf(name), connect: (database: string) => connect(name, database, before) },
  }));
  const replaced = new Restore({
    config,
    owner: { group: config.KAFKA_GROUP_ID, server: '', partitions: 'all' },
    others: [],
    replicas: new RestoredReplicas(all, running.database),
    kafka: createKafka(config, 'test', createLogger('test', 'silent')),
    server: connect(own, 'default', before),
    scratchOf: (database) => connect(own, database, before),
    location: parseBackupLocation('--from', place, config, '/'),
    signal: new AbortController().signal,
  });
  return await replaced.run(await replaced.plan(), () => {});
}

const isMove = (statement: string, { table }: Readonly<Record<string, unknown>>, of: string) =>
  statement.includes('REPLACE PARTITION') && table === of;

const isDrop = (statement: string, parameters: Readonly<Record<string, unknown>>, database: string) =>
  statement.startsWith('DROP DATABASE') && parameters['database'] === database;

const isEnd = (statement: string) =>
  statement.includes('INSERT INTO database_identity') && statement.includes('AS newest');

const isSync = (statement: string, table: string) => statement.startsWith(`SYSTEM SYNC REPLICA ${table} `);

const state = (at: Name) => read(at, 'SELECT argMax(state, recorded_at) FROM database_identity');

const isDeleted = async (at: Name, user: string) =>
  (await read(at, `SELECT count() FROM user_deletions WHERE user_id = '${user}'`)) !== '0';

/** Kafka has never had it. */
const deleteUser = (at: Name, user: string) =>
  read(at, `INSERT INTO user_deletions (workspace_id, user_id, version) VALUES ('w', '${user}', 1)`);

async function expectWhole(): Promise<void> {
  for (const name of NAMES) {
    expect(await state(name)).toBe('complete');
    await read(name, 'SYSTEM SYNC REPLICA events LIGHTWEIGHT');
    expect(await read(name, 'SELECT uniqExact(uuid) FROM events')).toBe(String(EVENTS));
  }
  const left = "SELECT count() FROM system.databases WHERE name LIKE '%\\_restoring' OR name LIKE '%\\_repla%'";
  for (const name of NAMES) expect(await read(name, left, 'default')).toBe('0');
}

/** A member of a consumer group, as a writer is. */
async function joinGroup(groupId: string): Promise<AsyncDisposable> {
  const consumer = createKafka(configOf('r1'), 'test', createLogger('test', 'silent')).consumer({ groupId });
  const joined = new Promise((resolve) => consumer.on('consumer.group_join', resolve));
  await consumer.connect();
  await consumer.subscribe({ topic: topicNames(configOf('r1')).events });
  await consumer.run({ autoCommit: false, eachMessage: async () => undefined });
  await joined;
  return { [Symbol.asyncDispose]: () => consumer.disconnect() };
}

test('deletions and settings that only the dropped database had are there after a restore that failed again and again', async () => {
  await deleteUser('r1', 'gone');
  await read('r1', "INSERT INTO retention (workspace_id, days, set_at) VALUES ('w', 77, now64(6))");
  const filling = restore(async (_, statement, parameters) => {
    if (isMove(statement, parameters, 'database_identity')) throw new Error('r2 ends');
  });
  await expect(filling).rejects.toThrow(new HalfReplaced('r2 ends'));
  expect(await isDeleted('r1', 'gone')).toBe(false);
  const dropping = restore(async (at, statement, parameters) => {
    if (at === 'r2' && isDrop(statement, parameters, running.database)) throw new Error('r2 ends again');
  });
  await expect(dropping).rejects.toThrow(new HalfReplaced('r2 ends again'));
  // This one fails before it drops anything.
  let isExchanged = false;
  const refused = await restore(async (at, statement) => {
    if (statement.startsWith('RENAME DATABASE')) isExchanged = true;
    if (isExchanged && at === 'r2' && statement.includes('max(total_replicas)')) throw new Error('r2 is away');
  }).catch((error) => error);
  expect(refused).toBeInstanceOf(Refused);
  expect(refused.message).toContain('r2 does not answer: r2 is away');
  await restore();
  for (const name of NAMES) {
    expect(await isDeleted(name, 'gone')).toBe(true);
    expect(await read(name, "SELECT argMax(days, set_at) FROM retention WHERE workspace_id = 'w'")).toBe('77');
  }
  await expectWhole();
});

test('deletions and settings that another replica has alone are kept, or the restore is refused', async () => {
  for (const table of ['user_deletions', 'retention']) await read('r1', `SYSTEM STOP FETCHES ${table}`);
  await deleteUser('r2', 'elsewhere');
  await read('r2', "INSERT INTO retention (workspace_id, days, set_at) VALUES ('w', 88, now64(6))");
  const away = restore(async (at, statement) => {
    if (isSync(statement, 'retention')) await read('r1', 'SYSTEM START FETCHES retention');
    if (at === 'r2' && statement.includes('FROM user_deletions')) throw new Error('r2 is busy');
  });
  await expect(away).rejects.toThrow('r2 cannot be read: its deletions of users would be lost');
  await read('r1', 'SYSTEM STOP FETCHES retention');
  await read('r2', "INSERT INTO retention (workspace_id, days, set_at) VALUES ('w', 99, now64(6))");
  await restore(async (_, statement) => {
    if (isSync(statement, 'retention')) await read('r1', 'SYSTEM START FETCHES retention');
  });
  expect(await isDeleted('r1', 'elsewhere')).toBe(true);
  expect(await read('r1', "SELECT argMax(days, set_at) FROM retention WHERE workspace_id = 'w'")).toBe('99');
  await expectWhole();
});

test('nothing is dropped while a replica is read-only', async () => {
  // One of its tables.
  await read('r2', 'DETACH TABLE retention');
  await read('r1', "SYSTEM DROP REPLICA 'r2' FROM TABLE retention");
  await read('r2', 'ATTACH TABLE retention');
  await until('a table to be read-only', async () => (await read('r2', READ_ONLY)) === '1');
  await expect(restore()).rejects.toThrow('r2 is read-only');
  await read('r2', 'SYSTEM RESTORE REPLICA retention');
  await eventually(() => read('r2', READ_ONLY)).toBe('0');

  await replicas.keeper.kill9();
  await until('the replicas to be read-only', async () => (await read('r2', READ_ONLY)) === '1');
  await expect(restore()).rejects.toThrow('r2 is read-only: it has no session of Keeper');
  await replicas.keeper.restart();
  for (const name of NAMES) await eventually(() => read(name, READ_ONLY)).toBe('0');
  await expectWhole();
});

test('the rights that the page lists are enough, and what is missing is named before anything is dropped', async () => {
  const run = (user: string) => {
    const account = { CLICKHOUSE_MIGRATE_USER: user, CLICKHOUSE_MIGRATE_PASSWORD: PASSWORD };
    return sluice(running, ['restore', '--from', place, '--server', 'r1', '--yes'], account);
  };
  const lacking = await run('sluice_lacking');
  expect(lacking).toEqual({
    code: 1,
    output: expect.stringContaining(`r2: the account lacks ALTER DELETE ON ${running.database}.*: `),
  });
  // Before it asks whether to restore.
  expect(lacking.output).not.toContain('is a backup of');
  await expectWhole();
  expect(await run('sluice_restore')).toEqual({ code: 0, output: expect.stringContaining('is restored') });
  await expectWhole();
});

test('a restore ends when a newer one has begun, and one through another replica is refused', async () => {
  const go = Promise.withResolvers<void>();
  const reached = Promise.withResolvers<void>();
  const older = restore(async (_, statement, parameters) => {
    if (!isMove(statement, parameters, 'user_deletions')) return;
    reached.resolve();
    await go.promise;
    throw new Error('the connection broke');
  });
  await reached.promise;
  await expect(restore(undefined, 'r2')).rejects.toThrow('run it again with --server r1');
  go.resolve();
  await expect(older).rejects.toThrow('the connection broke');

  // At the end of the older one, the newer one has a part of the rows only.
  const end = Promise.withResolvers<void>();
  const isEnding = Promise.withResolvers<void>();
  const first = restore(async (_, statement) => {
    if (!isEnd(statement)) return;
    isEnding.resolve();
    await end.promise;
  });
  await isEnding.promise;
  let ofOlder: unknown;
  let between = '';
  await restore(async (_, statement, parameters) => {
    if (!isMove(statement, parameters, 'events')) return;
    end.resolve();
    ofOlder = await first.catch((error) => error);
    between = await state('r1');
  });
  expect(ofOlder).toEqual(new HalfReplaced('another restore has begun meanwhile: let that one run to its end'));
  expect(between).toBe('filling');
  await expectWhole();

  const moves: string[] = [];
  let isBegun = false;
  const older2 = restore(async (_, statement, parameters) => {
    if (statement.includes('REPLACE PARTITION')) moves.push(String(parameters['table']));
    if (!isSync(statement, 'user_deletions') || isBegun) return;
    isBegun = true;
    const newer = restore(async (_, moved, of) => {
      if (isMove(moved, of, 'events')) throw new Error('r1 ends');
    });
    await expect(newer).rejects.toThrow(new HalfReplaced('r1 ends'));
  });
  await expect(older2).rejects.toThrow('another restore has begun meanwhile');
  expect(moves.at(-1)).toBe('user_deletions');
  await restore();
  await expectWhole();
});

test('a replica knows that it is being filled before its writers are fenced, and has everything before it is complete', async () => {
  const atFence: string[] = [];
  let atEnd = '';
  await restore(async (at, statement, parameters) => {
    if (isEnd(statement)) atEnd = await read('r2', 'SELECT uniqExact(uuid) FROM events');
    if (isEnd(statement) || isMove(statement, parameters, 'database_identity'))
      await read('r2', 'SYSTEM STOP FETCHES database_identity');
    if (isMove(statement, parameters, 'events')) await read('r2', 'SYSTEM STOP FETCHES events');
    for (const table of ['database_identity', 'events'])
      if (at === 'r2' && isSync(statement, table)) await read('r2', `SYSTEM START FETCHES ${table}`);
    if (at === 'r2' && statement.includes('INSERT INTO writer_epochs')) atFence.push(await state('r2'));
  });
  expect(atFence).toEqual(['filling']);
  expect(atEnd).toBe(String(EVENTS));
  await expectWhole();
});

test('a database that is complete is restored, whatever fails afterwards', async () => {
  let isComplete = false;
  const { late } = await restore(async (at, statement, parameters) => {
    if (isEnd(statement)) isComplete = true;
    if (!isComplete) return;
    if (at === 'r2' && isSync(statement, 'database_identity')) throw new Error('r2 ends');
    if (isDrop(statement, parameters, `${running.database}_replacing`)) throw new Error('r1 is busy');
  });
  expect(late).toEqual(['r2']);
  for (const name of NAMES) await eventually(() => state(name)).toBe('complete');
  await restore();
  await expectWhole();
});

test('a writer that started before it could know is found', async () => {
  await using members = new AsyncDisposableStack();
  const found = restore(async (at, statement) => {
    if (at === 'r2' && statement.includes('INSERT INTO writer_epochs'))
      members.use(await joinGroup(configOf('r1').KAFKA_GROUP_ID));
  });
  await expect(found).rejects.toThrow(HalfReplaced);
  await expect(found).rejects.toThrow('Stop the writers first');
  for (const name of NAMES) expect(await state(name)).toBe('filling');
  await members.disposeAsync();
  await restore();
  await expectWhole();
});

test('the writers of the replaced databases are looked for, and fenced', async () => {
  await read('r1', "INSERT INTO writer_groups (group_id) VALUES ('replicarestores-mirror')");
  await using members = new AsyncDisposableStack();
  const refused = restore(async (_, statement) => {
    if (statement.startsWith('RENAME DATABASE')) members.use(await joinGroup('replicarestores-mirror'));
  });
  await expect(refused).rejects.toThrow('the group replicarestores-mirror has 1');
  await expectWhole();
  await members.disposeAsync();
  await restore();
  const fence = "SELECT count() FROM writer_epochs WHERE group_id = 'replicarestores-mirror'";
  for (const name of NAMES) expect(await read(name, fence)).toBe('1');
  await expectWhole();
});

test('a replica that comes to the new tables meanwhile is found', async () => {
  let isDropped = false;
  const found = restore(async (_, statement, parameters) => {
    if (statement.startsWith('DROP DATABASE') && parameters['database'] === running.database) isDropped = true;
    if (!isDropped || !statement.includes('max(total_replicas)')) return;
    isDropped = false;
    const creation = await read(
      'r1',
      "SELECT create_table_query FROM system.tables WHERE database = currentDatabase() AND name = 'writer_groups'",
    );
    await read('r1', 'CREATE DATABASE third', 'default');
    await read(
      'r1',
      creation
        .replace(`CREATE TABLE ${running.database}.`, 'CREATE TABLE third.')
        .replaceAll('{database}', running.database)
        .replaceAll('{replica}', 'r3')
        .replaceAll("\\'", "'"),
      'default',
    );
  });
  await expect(found).rejects.toThrow('Keeper knows 3 replicas');
  await expect(found).rejects.toThrow(HalfReplaced);
  await read('r1', 'DROP DATABASE third SYNC', 'default');
  await restore();
  await expectWhole();
});

test('deletions are in the new database before anything that they hide', async () => {
  await deleteUser('r1', 'hidden');
  const broken = restore(async (_, statement, parameters) => {
    if (isMove(statement, parameters, 'events')) throw new Error('r1 ends');
  });
  await expect(broken).rejects.toThrow(new HalfReplaced('r1 ends'));
  for (const name of NAMES) {
    expect(await state(name)).toBe('filling');
    for (const table of ['user_deletions', 'pending_deletions', 'identity_deletions'])
      expect(await read(name, `SELECT count() FROM ${table} WHERE user_id = 'hidden'`), table).not.toBe('0');
  }
  const status = await sluice(running, ['servers', 'status']);
  expect(status.output).toContain('r1 is being filled, and is not read until then: sluice restore.');
  const backup = await sluice(running, ['backup', '--server', 'r2', '--to', `${place}-of-half`]);
  expect(backup).toEqual({ code: 1, output: expect.stringContaining('when "sluice restore" is done') });
  await restore();
  await expectWhole();
});

test('a replica that fetches is waited for, and one that does not is given up', async () => {
  const client = connect('r2', running.database, async () => undefined);
  await read('r2', 'SYSTEM STOP FETCHES retention');
  await read('r1', "INSERT INTO retention (workspace_id, days, set_at) VALUES ('w', 30, now64(6))");
  await expect(syncReplica(client, 'retention', { seconds: 1, stalledMs: 0 })).rejects.toThrow(
    'the replica has fetched nothing of the table retention',
  );
  await read('r2', 'SYSTEM STOP MERGES retention');
  let waits = 0;
  // It gets something in each second.
  const fetching = connect('r2', running.database, async (_, statement) => {
    if (!statement.includes('system.replicated_fetches')) return;
    waits += 1;
    await read('r2', `INSERT INTO retention (workspace_id, days, set_at) VALUES ('other ${waits}', 30, now64(6))`);
    if (waits === 3) await read('r2', 'SYSTEM START FETCHES retention');
  });
  const waiting: number[] = [];
  const onWait = (entries: number) => waiting.push(entries);
  await syncReplica(fetching, 'retention', { seconds: 1, stalledMs: 0, onWait });
  expect(waits).toBeGreaterThanOrEqual(3);
  expect(waiting[0]).toBeGreaterThan(0);
  await read('r2', 'SYSTEM START MERGES retention');
  expect(await read('r2', "SELECT argMax(days, set_at) FROM retention WHERE workspace_id = 'w'")).toBe('30');
  await read('r2', 'SYSTEM STOP FETCHES retention');
  await read('r1', "INSERT INTO retention (workspace_id, days, set_at) VALUES ('w', 31, now64(6))");
  const interrupted = new AbortController();
  const wait = syncReplica(client, 'retention', { signal: interrupted.signal });
  interrupted.abort();
  await expect(wait).rejects.toThrow('it was interrupted');
  await read('r2', 'SYSTEM START FETCHES retention');
});

test('plain tables of a host are replaced by replicated ones, and the deletions and settings in them are kept', async () => {
  for (const name of NAMES)
    await dropDatabase(
      connect(name, 'default', async () => undefined),
      running.database,
    );
  await migrate({ ...configOf('r1'), CLICKHOUSE_REPLICATION: undefined }, createLogger('test', 'silent'));
  await deleteUser('r1', 'plain');
  await read('r1', "INSERT INTO retention (workspace_id, days, set_at) VALUES ('w', 55, now64(6))");
  await expect(restore(undefined, 'r2')).rejects.toThrow('choose that one (--server), so that its settings are kept');
  await restore();
  for (const name of NAMES) {
    expect(await isDeleted(name, 'plain')).toBe(true);
    expect(await read(name, "SELECT argMax(days, set_at) FROM retention WHERE workspace_id = 'w'")).toBe('55');
  }
  await expectWhole();
});

test('the backup of a mirror becomes that of all replicas', async () => {
  await read(
    'r1',
    `INSERT INTO database_identity (id, server, group_id, partitions, state, detail, recorded_at)
      SELECT id, 'm1', group_id, partitions, state, detail, now64(6) FROM database_identity ORDER BY recorded_at DESC LIMIT 1`,
  );
  const from = `${place}-of-mirror`;
  expect(await sluice(running, ['backup', '--server', 'r1', '--to', from])).toMatchObject({ code: 0 });
  expect(await sluice(running, ['restore', '--from', from, '--server', 'r1', '--yes'], RESTORE_ACCOUNT)).toEqual({
    code: 0,
    output: expect.stringContaining('It is of m1 '),
  });
  for (const name of NAMES)
    expect(await read(name, 'SELECT argMax(server, recorded_at) FROM database_identity')).toBe('');
  await expectWhole();
});

test('a backup of before the tables of deletions is refused', async () => {
  const database = `${running.database}_old`;
  const migrations = (await readMigrations()).slice(0, 59);
  const config = { ...configOf('r1'), CLICKHOUSE_REPLICATION: undefined, CLICKHOUSE_DATABASE: database };
  await migrate(config, createLogger('test', 'silent'), migrations);
  const client = connect('r1', database, async () => undefined);
  await recordBackup(client, crypto.randomUUID(), 'old');
  const current = place;
  place = `${current}-old`;
  const { engine, pathOf, params } = parseBackupLocation('--to', place, config, '/');
  const query_params = { ...params, path: pathOf('state') };
  await client.command({ query: `BACKUP TABLE backups AS sluice.backups TO ${engine}`, query_params });
  await expect(restore()).rejects.toThrow('restore it at one server, start a writer of this version there');
  place = current;
  await expectWhole();
});
