import { randomUUID } from 'node:crypto';
import { startClickHouse } from '@sluice/local-stack/clickhouse';
import { makeTempDir } from '@sluice/local-stack/testing/temp-dir';
import { configured, serversConfig } from '@sluice/servers/state/connected-server';
import { createLogger } from '@sluice/shared/base/log';
import { createClickHouse } from '@sluice/shared/clickhouse/client';
import { migrate } from '@sluice/shared/clickhouse/migrate';
import { TEST_ACCOUNTS, WRITER_ACCOUNT } from '@sluice/shared/clickhouse/testing/test-accounts';
import { withAdmin } from '@sluice/shared/kafka/topics';
import { recordState } from '@sluice/storage/clickhouse/identity';
import { OwnDatabase } from '@sluice/storage/clickhouse/own-database';
import { ConfigResourceTypes } from 'kafkajs';
import { expect, inject, onTestFinished, test, vi } from 'vitest';
import { NOWHERE, startMember, startServers, type TestServer } from '../testing/test-servers.ts';
import { loadAllServers } from './chosen-server.ts';
import { parseCopy, runCopyCommand } from './copy-command.ts';

const engines = { clickhouseUrl: inject('clickhouseUrl'), kafkaBrokers: inject('kafkaBrokers') };

type Servers = Awaited<ReturnType<typeof startServers<'a1' | 'a2'>>>;

const DELETED_US = Date.UTC(2026, 2, 1, 12) * 1_000;

/** An event of a user that came so many microseconds after the deletion of `gone`. */
function event(user_id: string, afterUs: number, fields: object = {}) {
  const received_at = DELETED_US + afterUs;
  const timestamp = new Date(Math.floor(received_at / 1_000)).toISOString();
  return { workspace_id: 'a', timestamp, uuid: randomUUID(), event: 'e', user_id, received_at, ...fields };
}

/** Fills `a1`, whose writers have stored the first three of five messages of each partition. */
async function fill({ kafka, topics, of: { a1 } }: Servers): Promise<void> {
  await a1.insert('events', event('ann', 1), event('gone', -1), event('back', -1), event('back', 1));
  await a1.insert('events', event('ann', 1, { timestamp: '2020-01-01 00:00:00' }));
  const seen = { first_seen_at: '2026-03-01', last_seen_at: '2026-03-01' };
  await a1.insert(
    'entities',
    ...['ann', 'gone'].map((id) => ({ workspace_id: 'a', kind: 'user', id, version: DELETED_US - 1, ...seen })),
  );
  for (const table of ['user_deletions', 'pending_deletions']) {
    for (const user_id of ['gone', 'back']) await a1.insert(table, { workspace_id: 'a', user_id, version: DELETED_US });
  }
  await a1.insert('user_sightings', { workspace_id: 'a', user_id: 'ann', version: 1 });
  await a1.insert('identity_links', { workspace_id: 'a', anonymous_id: 'v', user_id: 'ann', version: 1 });
  await a1.insert('identity_deletions', { workspace_id: 'a', user_id: 'gone', version: DELETED_US });
  await a1.insert('dead_letters', { id: 'letter', kind: 'events', row: '{}', recorded_at: '2026-03-01 00:00:00' });
  await a1.insert('retention', { workspace_id: 'a', days: 4_000 });
  for (const topic of Object.values(topics)) await a1.insert('topic_partitions', { topic, partitions: 2 });
  const producer = kafka.producer();
  await producer.connect();
  for (const topic of Object.values(topics)) {
    const messages = [0, 1].flatMap((partition) => Array.from({ length: 5 }, () => ({ value: 'x', partition })));
    await producer.send({ topic, messages });
    for (const partition of [0, 1]) {
      await a1.insert('writer_positions', { group_id: a1.group, topic, partition, next_offset: 3, leader_epoch: -1 });
    }
  }
  await producer.disconnect();
  await commit(kafka, a1.group, topics.events, '3');
}

async function commit(kafka: Servers['kafka'], groupId: string, topic: string, offset: string): Promise<void> {
  const partitions = [0, 1].map((partition) => ({ partition, offset }));
  await withAdmin(kafka, (admin) => admin.setOffsets({ groupId, topic, partitions }));
}

async function committed({ kafka, topics }: Servers, { group: groupId }: TestServer): Promise<string[]> {
  const found = await withAdmin(kafka, (admin) => admin.fetchOffsets({ groupId, topics: [topics.events] }));
  return found.flatMap(({ partitions }) => partitions.map(({ offset }) => offset));
}

/** Lets Kafka delete messages by their age. */
async function keepFor({ kafka, topics }: Servers, ms: number): Promise<void> {
  const configEntries = [{ name: 'retention.ms', value: String(ms) }];
  const resources = Object.values(topics).map((name) => ({
    type: ConfigResourceTypes.TOPIC,
    ...{ name, configEntries },
  }));
  await withAdmin(kafka, (admin) => admin.alterConfigs({ validateOnly: false, resources }));
}

const CONTENTS: Readonly<Record<string, string>> = {
  events: 'SELECT * FROM events WHERE received_at > fromUnixTimestamp64Micro({deleted:Int64}) ORDER BY ALL',
  entities: 'SELECT * FROM entities ORDER BY ALL',
  deletions: 'SELECT workspace_id, user_id, version FROM user_deletions ORDER BY ALL',
  sightings: 'SELECT * FROM user_sightings ORDER BY ALL',
  links: 'SELECT * FROM identity_links ORDER BY ALL',
  identityDeletions: 'SELECT * FROM identity_deletions ORDER BY ALL',
  deadLetters: 'SELECT *, workspace_id FROM dead_letters ORDER BY ALL',
  retention: 'SELECT * FROM retention ORDER BY ALL',
  topicPartitions: 'SELECT * FROM topic_partitions ORDER BY ALL',
};

async function contentsOf(server: TestServer) {
  const rows = Object.entries(CONTENTS).map(async ([name, query]) => {
    return [name, await server.read(query, { deleted: DELETED_US })] as const;
  });
  return Object.fromEntries(await Promise.all(rows));
}

const COPY = ['servers', 'copy', '--from', 'a1', '--to', 'a2', '--yes'];

test('a server gets all that another one has, without what deletions hide, and its writers go on where the other was', async () => {
  await using servers = await startServers(engines, ['a1', 'a2']);
  const { a1, a2 } = servers.of;
  await fill(servers);
  // What the target was: it stored something, committed more, lost it, and its writers halted.
  await a2.insert('events', event('old', 1));
  await a2.insert('entities', { workspace_id: 'a', kind: 'user', id: 'old', version: 1 });
  await commit(servers.kafka, a2.group, servers.topics.events, '5');
  await a2.insert('writer_positions', {
    group_id: a2.group,
    topic: servers.topics.events,
    partition: 0,
    next_offset: 5,
  });
  await a2.insert('writer_halts', {
    ...{ group_id: a2.group, topic: servers.topics.events, partition: 1, reason: 'nothing is stored', detail: 'lost' },
    halted_at: '2026-03-01 00:00:00',
  });
  await a2.insert('writer_epochs', { group_id: a2.group, incarnation: 3, generation: 17 });
  const before = Math.floor(Date.now() / 1_000);
  const idOf = () => a2.read('SELECT id FROM database_identity ORDER BY recorded_at DESC LIMIT 1');
  const id = await idOf();

  const { code, stdout, stderr } = await servers.sluice(COPY);
  expect([code, stderr]).toEqual([0, '']);
  expect(stdout).toMatch(/^a1 has 5 events in 2 partitions of the table: .*\na2 has 1 events, which are dropped/);
  expect(stdout).toMatch(/events 202603: 2 rows, \d of 2 table partitions\n/);
  expect(stdout).toMatch(/a2 is complete, [\d.]+ s\. Start its writers/);

  expect(await contentsOf(a2)).toEqual(await contentsOf(a1));
  expect(await a2.read("SELECT user_id FROM events WHERE user_id IN ('gone', 'old')")).toEqual([]);
  // The row of the deleted user was copied, and is erased by the writers.
  const pending = await a2.read("SELECT user_id, version FROM pending_deletions FINAL WHERE user_id = 'gone'");
  expect(pending).toEqual([{ user_id: 'gone', version: DELETED_US }]);
  // Streams would take all that was copied for new.
  expect(await idOf()).not.toEqual(id);
  const identity = 'SELECT server, group_id AS groupId, state FROM database_identity ORDER BY recorded_at DESC LIMIT 1';
  expect(await a2.read(identity)).toEqual([{ server: 'a2', groupId: a2.group, state: 'complete' }]);
  const positions = 'SELECT DISTINCT group_id AS groupId, next_offset AS next FROM writer_positions FINAL';
  expect(await a2.read(positions)).toEqual([{ groupId: a2.group, next: 3 }]);
  expect(await committed(servers, a2)).toEqual(['3', '3']);
  expect(await committed(servers, a1)).toEqual(['3', '3']);
  expect(await a2.read('SELECT resume_offset AS at FROM writer_halts FINAL WHERE resumed_at IS NOT NULL')).toEqual([
    { at: null },
  ]);
  // A writer that froze in an epoch before is fenced.
  const [epoch] = await a2.read<{ incarnation: number }>('SELECT max(incarnation) AS incarnation FROM writer_epochs');
  expect(epoch?.incarnation).toBeGreaterThanOrEqual(before);
});

test('a database that does not exist yet is created', async () => {
  await using servers = await startServers(engines, ['a1', 'a2']);
  const { a1, a2 } = servers.of;
  await fill(servers);
  await a2.client.command({ query: `DROP DATABASE ${a2.database} SYNC` });
  expect(await servers.sluice(COPY)).toMatchObject({ code: 0 });
  expect(await contentsOf(a2)).toEqual(await contentsOf(a1));
  expect(await servers.sluice(['servers', 'check', servers.env['CLICKHOUSE_SERVERS_FILE'] ?? ''])).toMatchObject({
    code: 0,
  });
});

/** Copies in this process, and does something before it confirms. Returns the exit code and what was printed. */
async function copyAfter(servers: Servers, beforeConfirmed: () => Promise<void>) {
  const lines: string[] = [];
  const stderr = vi.spyOn(console, 'error').mockImplementation((line) => void lines.push(line));
  const confirm = async () => {
    await beforeConfirmed();
    return true;
  };
  const known = configured(loadAllServers(serversConfig, servers.env));
  const args = parseCopy(['copy', '--from', 'a1', '--to', 'a2'], known);
  const code = await runCopyCommand(args, { print: (line) => void lines.push(line), confirm });
  stderr.mockRestore();
  return { code, output: lines.join('\n') };
}

test('what the source stores until the copy is confirmed is copied, also in a new partition of the table', async () => {
  await using servers = await startServers(engines, ['a1', 'a2']);
  const { a1, a2 } = servers.of;
  await fill(servers);
  const { code } = await copyAfter(servers, async () => {
    await a1.insert('events', event('late', 10, { timestamp: '2026-04-01 00:00:00' }));
    await a1.client.command({
      query: 'INSERT INTO writer_positions SELECT * REPLACE(5 AS next_offset) FROM writer_positions',
    });
  });
  expect(code).toBe(0);
  expect(await a2.read('SELECT DISTINCT next_offset AS next FROM writer_positions FINAL')).toEqual([{ next: 5 }]);
  expect(await contentsOf(a2)).toEqual(await contentsOf(a1));
  expect(await a2.read("SELECT user_id FROM events WHERE user_id = 'late'")).toHaveLength(1);
});

test('nothing is dropped when writers of the target were started, or the source gave messages up, until it is confirmed', async () => {
  await using servers = await startServers(engines, ['a1', 'a2']);
  const { a1, a2 } = servers.of;
  await fill(servers);
  await servers.writeFile({ a1: {}, a2: { serves: false } });
  await a2.insert('events', event('old', 1));
  const stateOf = (server: TestServer) =>
    server.read('SELECT state FROM database_identity ORDER BY recorded_at DESC LIMIT 1');
  let member: AsyncDisposable | undefined;
  const withWriters = await copyAfter(servers, async () => {
    member = await startMember(servers, a2);
  });
  await member?.[Symbol.asyncDispose]();
  expect(withWriters).toEqual({
    code: 1,
    output: expect.stringMatching(/\nStop the writers first: .*\na2 is as it was, with the tables of this version\.$/),
  });
  expect(await stateOf(a2)).toEqual([{ state: 'complete' }]);
  const ofIncomplete = await copyAfter(servers, () => recordState(a1.client, 'incomplete', 'Offsets 1 to 2 are gone.'));
  expect(ofIncomplete).toEqual({
    code: 1,
    output: expect.stringMatching(/\na1 is incomplete: copy a complete server\.\na2 is as it was/),
  });
  expect(await stateOf(a2)).toEqual([{ state: 'complete' }]);
  expect(await a2.read("SELECT user_id FROM events WHERE user_id = 'old'")).toHaveLength(1);
});

test('of equal keys the newest is copied: it is the one that was sent again after the deletion', async () => {
  await using servers = await startServers(engines, ['a1', 'a2'], { altersTables: true });
  const { a1, a2 } = servers.of;
  await fill(servers);
  // The deletion came after the positions were read: the target does not know it yet.
  const same = { uuid: randomUUID(), timestamp: '2026-03-05 00:00:00' };
  await a1.client.command({ query: 'SYSTEM STOP MERGES events' });
  await a1.insert('events', event('first', 10, same));
  await a1.insert('events', event('second', 20, same));
  expect(await servers.sluice(COPY)).toMatchObject({ code: 0 });
  const users = await a2.read('SELECT user_id FROM events WHERE uuid = {uuid:UUID}', { uuid: same.uuid });
  expect(users).toEqual([{ user_id: 'second' }]);
});

test('what speaks against a copy is named, all of it, and nothing is changed', async () => {
  await using servers = await startServers(engines, ['a1', 'a2'], { altersTables: true });
  const { a1, a2 } = servers.of;
  await fill(servers);
  const refused = async (...more: string[]) => {
    const { code, stdout, stderr } = await servers.sluice([...COPY, ...more]);
    expect([code, stdout, stderr]).toEqual([1, '', expect.stringMatching(/\nNothing was changed\.\n$/)]);
    return stderr.split('\n').slice(0, -2);
  };
  await a2.insert('events', event('served', 1));
  await keepFor(servers, 600_000);
  expect(await refused()).toEqual([expect.stringMatching(/^a2 has events, and is read: .*"serves": false/)]);
  expect(await refused('--bandwidth', '1')).toEqual([
    expect.stringMatching(/^The copy may take \d+ s, and Kafka deletes what a1 has not stored yet in \d+ s/),
    expect.stringMatching(/^a2 has events/),
  ]);

  const member = await startMember(servers, a2);
  await recordState(a1.client, 'incomplete', 'Offsets 1 to 2 are gone.');
  await a1.client.command({ query: "INSERT INTO schema_migrations (number, name) VALUES (9998, '9998-newer.sql')" });
  await servers.writeFile({
    a1: { group: 'other', partitions: '1-1', serves: false },
    a2: { partitions: '0-0', serves: false },
    a3: {},
  });
  expect(await refused()).toEqual([
    `a1: the database belongs to the group ${a1.group}, and the file says other.`,
    'a1: the database stores the partitions all, and the file says 1-1.',
    'a1 has migrations of a newer version: use the command of that version.',
    'a1 is incomplete: copy a complete server. Offsets 1 to 2 are gone.',
    'a1 has the partitions 1-1, and a2 0-0: a server is filled from one that has all of its partitions.',
    'a2: the database stores the partitions all, and the file says 0-0.',
    expect.stringMatching(/^Stop the writers first: the group .*a2 has 1 /),
  ]);
  await member[Symbol.asyncDispose]();
  await servers.writeFile({ a1: { url: NOWHERE }, a2: { url: NOWHERE, database: 'other' } });
  expect(await refused()).toEqual([
    expect.stringMatching(/^a1 does not answer: .*ECONNREFUSED/),
    expect.stringMatching(/^a2 does not answer: .*ECONNREFUSED/),
  ]);
  expect(await a2.read('SELECT user_id FROM events')).toEqual([{ user_id: 'served' }]);
  expect(await a2.read('SELECT DISTINCT state FROM database_identity')).toEqual([{ state: 'complete' }]);
});

test('a native address where nothing answers, or that leads to another database, is refused', async () => {
  await using servers = await startServers(engines, ['a1', 'a2']);
  await fill(servers);
  const nowhere = await servers.sluice([...COPY, '--from-native', '127.0.0.1:1']);
  expect([nowhere.code, nowhere.stderr]).toEqual([
    1,
    expect.stringMatching(/^The server that is filled cannot read a1: .*127\.0\.0\.1:1.*\nNothing was changed\.\n$/s),
  ]);
  await using folder = await makeTempDir();
  const another = await startClickHouse({ dataDir: folder.path, accounts: TEST_ACCOUNTS });
  onTestFinished(() => another.kill9());
  const config = { CLICKHOUSE_URL: another.url, CLICKHOUSE_DATABASE: servers.of.a1.database, ...WRITER_ACCOUNT };
  await migrate(config, createLogger('test', 'silent'));
  const options = { application: 'test', requestTimeoutMs: 240_000, connectionsMax: 1 };
  await using client = createClickHouse(config, options);
  await new OwnDatabase(client, { group: servers.of.a1.group, server: 'a1', partitions: 'all' }).claim();
  const other = await servers.sluice([...COPY, '--from-native', `127.0.0.1:${another.tcpPort}`]);
  expect([other.code, other.stderr]).toEqual([
    1,
    'The native address of a1 leads to another database than its url.\nNothing was changed.\n',
  ]);
});

test('only one command copies to a server at a time, and one that was killed does not count for long', async () => {
  await using servers = await startServers(engines, ['a1', 'a2']);
  const { a2 } = servers.of;
  await fill(servers);
  const begun = (inSeconds: number, step = 'begun') =>
    a2.client.command({
      query: `INSERT INTO copies (run, step, recorded_at)
        SELECT '0190a0a0-0000-7000-8000-00000000000a', {step:String}, now64(6) + toIntervalSecond({inSeconds:UInt32})`,
      query_params: { inSeconds, step },
    });
  // In a while: it counts for twenty seconds, which a busy machine may take to start the other one.
  await begun(60);
  const { code, stderr } = await servers.sluice(COPY);
  expect([code, stderr]).toEqual([
    1,
    expect.stringMatching(/^Another command copies to this server\. If it was killed, try again in \d+ s\.\nNothing/),
  ]);
  await begun(61, 'ended');
  expect(await servers.sluice(COPY)).toMatchObject({ code: 0 });
});

test('wrong arguments are all named before anything is connected to', async () => {
  await using servers = await startServers(engines, ['a1', 'a2']);
  const args = ['servers', 'copy', '--from', 'a3', '--from-native', 'x', '--bandwidth', '1.5'];
  expect(await servers.sluice(args)).toEqual({
    code: 2,
    stdout: '',
    stderr: `--from: there is no server a3 in CLICKHOUSE_SERVERS_FILE, which has a1, a2.
--to is needed: one of a1, a2.
--from-native must be a host and a port, such as ch-a1:9000.
--bandwidth must be a whole number of bytes a second.
sluice servers --help shows its usage.
`,
  });
  for (const [wrong, message] of [
    [['--from', 'a1', '--to', 'a1'], '--from and --to must be two servers.'],
    [['a1', 'a2'], 'copy takes no arguments but its options.'],
  ] as const) {
    const { code, stderr } = await servers.sluice(['servers', 'copy', ...wrong]);
    expect([code, stderr]).toEqual([2, expect.stringContaining(message)]);
  }
});
