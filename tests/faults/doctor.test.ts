import { type ChildProcess, execFile } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { networkInterfaces } from 'node:os';
import { join } from 'node:path';
import type { LocalClickHouse } from '@sluice/local-stack/clickhouse';
import type { LocalKafka } from '@sluice/local-stack/kafka';
import { findFreePorts } from '@sluice/local-stack/ports';
import { makeTempDir } from '@sluice/local-stack/testing/temp-dir';
import {
  ADMINISTRATOR,
  QUERY_ACCOUNT,
  WEBHOOKS_ACCOUNT,
  WRITER_ACCOUNT,
} from '@sluice/shared/clickhouse/testing/test-accounts';
import { createNewest } from '@sluice/shared/clickhouse/testing/test-database';
import { withAdmin } from '@sluice/shared/kafka/topics';
import { generateKey, hashKey, writeKeysFile } from '@sluice/shared/keys/keys-file';
import { inherited } from '@sluice/shared/testing/inherited';
import { programFile } from '@sluice/shared/testing/program-file';
import type { Kafka } from 'kafkajs';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { readClickHouse } from '../kit/clickhouse.ts';
import { allowAllBut, clustersOf, diagnose, type Environment, lackingAccounts, topicsWith } from '../kit/doctor.ts';
import { ownClickHouse, ownKafka } from '../kit/engines.ts';
import { startHttpRouter } from '../kit/http-router.ts';
import { kafkaClient } from '../kit/kafka-client.ts';

// `sluice doctor` on clusters that each lack one thing: it names that, and nothing else.

/** The users of Kafka, each with the rights that it lacks. */
const USERS = {
  complete: [],
  writeless: ['Write'],
  readless: ['Read'],
  groupless: ['Group'],
  settingless: ['DescribeConfigs'],
  createless: ['Create'],
} as const;
type User = keyof typeof USERS;

/** The other replica of the shard that the server is in, an address that nobody has. */
const REPLICA = '203.0.113.2';

/** An address of this machine by which others may reach it. */
const ADDRESS = Object.values(networkInterfaces())
  .flatMap((addresses) => addresses ?? [])
  .find(({ family, internal }) => family === 'IPv4' && !internal)?.address;

const PASSWORD = 'secret-of-these-accounts';
const DATABASE = 'test_doctor';
const NOWHERE = 'http://127.0.0.1:1';

const started = new AsyncDisposableStack();
let folder: string;
let kafka: LocalKafka;
let clickhouse: LocalClickHouse;
let admin: Kafka;
/** The environment of a system that lacks nothing. */
let sound: Environment;

beforeAll(async () => {
  folder = started.use(await makeTempDir()).path;
  const users = Object.keys(USERS).map((name) => `user_${name}="${PASSWORD}"`);
  const login = `org.apache.kafka.common.security.plain.PlainLoginModule required ${users.join(' ')};`;
  const settings = { 'sasl.enabled.mechanisms': 'PLAIN', 'plain.sasl.jaas.config': login };
  const [tcpPort = 0] = await findFreePorts(1);
  const own = `${ADDRESS}:${tcpPort}`;
  const starting = [
    ownKafka({
      listeners: { LOGIN: { protocol: 'SASL_PLAINTEXT', settings } },
      settings: {
        'authorizer.class.name': 'org.apache.kafka.metadata.authorizer.StandardAuthorizer',
        'super.users': 'User:ANONYMOUS',
      },
    }),
    ownClickHouse({
      usersFiles: { 'doctor.xml': await lackingAccounts(PASSWORD, 'GRANT SELECT ON system.processes') },
      tcpPort,
      configFiles: {
        'clusters.xml': clustersOf({
          another: [['198.51.100.1', '198.51.100.2']],
          every: [[own, REPLICA, '203.0.113.3', '203.0.113.4']],
          examples: [[`127.0.0.1:${tcpPort}`, '127.0.0.2']],
          main: [
            [own, REPLICA],
            ['203.0.113.3', '203.0.113.4'],
          ],
        }),
      },
    }),
  ] as const;
  const [ofKafka, ofClickHouse] = await Promise.all(starting);
  [kafka, clickhouse] = [started.use(ofKafka), started.use(ofClickHouse)];
  admin = kafkaClient(kafka.brokers);
  await createNewest({ CLICKHOUSE_URL: clickhouse.url, CLICKHOUSE_DATABASE: DATABASE, ...ADMINISTRATOR });
  for (const [user, without] of Object.entries(USERS)) await allowAllBut(admin, user, without);
  const keysFile = join(folder, 'keys.json');
  await writeKeysFile(keysFile, [{ id: 'a', hash: hashKey(generateKey()), workspace: 'acme', scopes: ['ingest'] }]);
  sound = {
    ...as('complete'),
    ...(await topicsWith(admin, 'sound.')),
    KAFKA_BROKERS: (kafka.listeners['LOGIN'] ?? []).join(),
    CLICKHOUSE_URL: clickhouse.url,
    CLICKHOUSE_DATABASE: DATABASE,
    API_KEYS_FILE: keysFile,
    ...WRITER_ACCOUNT,
  };
});
afterAll(() => started.disposeAsync());

function as(user: User, password = PASSWORD): Environment {
  return { KAFKA_SASL_MECHANISM: 'plain', KAFKA_SASL_USERNAME: user, KAFKA_SASL_PASSWORD: password };
}

/** Runs `sluice doctor` as an operator does. */
function startDoctor(args: readonly string[], env: Environment, options: readonly string[] = []) {
  const { promise: ended, resolve } = Promise.withResolvers<{ code: number; stdout: string }>();
  const child: ChildProcess = execFile(
    process.execPath,
    [...options, programFile('sluice'), 'doctor', ...args],
    { env: { ...inherited(), ...env } },
    (error, stdout) => resolve({ code: error ? Number(error.code) : 0, stdout }),
  );
  return { child, ended };
}

test('a system that lacks nothing has a line for each check, with exit code 0', async () => {
  const { code, stdout } = await startDoctor([], sound).ended;
  expect(
    stdout
      .trimEnd()
      .split('\n')
      .filter((line) => !line.startsWith('ok ')),
  ).toEqual(['Nothing is wrong.']);
  expect(code).toBe(0);
  const reader = {
    ...sound,
    ...QUERY_ACCOUNT,
    CLICKHOUSE_MIGRATE_USER: '',
    CLICKHOUSE_MIGRATE_PASSWORD: '',
    ...WEBHOOKS_ACCOUNT,
  };
  const { results } = await diagnose(['query-api'], reader);
  expect(results.filter(({ state }) => state !== 'ok')).toEqual([]);
  expect(results.length).toBeGreaterThan(5);
});

describe.concurrent('one thing that is lacking is named, and nothing else', () => {
  const variants: readonly [what: string, check: string, found: RegExp, env: () => Promise<Environment>][] = [
    [
      'a wrong password of Kafka',
      'kafka.reached',
      /uthentication failed/,
      async () => as('complete', 'another-secret'),
    ],
    ['no Kafka', 'kafka.reached', /127\.0\.0\.1:1 cannot be reached/, async () => ({ KAFKA_BROKERS: '127.0.0.1:1' })],
    ['no right to write', 'kafka.write', /Write is missing for sound\.events/, async () => as('writeless')],
    ['no right to read', 'kafka.read', /Read is missing for sound\.events/, async () => as('readless')],
    [
      'no right to the group',
      'kafka.group',
      /Read is missing for the group sound\.writer/,
      async () => as('groupless'),
    ],
    ['no right to read settings', 'kafka.settings', /DescribeConfigs is missing/, async () => as('settingless')],
    [
      'no right to create topics that do not exist',
      'kafka.topics',
      /none\.events does not exist, and Kafka would not create it \(TOPIC_AUTHORIZATION_FAILED\)/,
      async () => ({ ...as('createless'), KAFKA_TOPIC_PREFIX: 'none.' }),
    ],
    [
      'another number of partitions',
      'kafka.topics',
      /few\.events has 1 partitions, and KAFKA_PARTITIONS is 2/,
      () => topicsWith(admin, 'few.', { partitions: 1 }),
    ],
    [
      'times of producers',
      'kafka.timestamps',
      /producers\.events has CreateTime/,
      () => topicsWith(admin, 'producers.', { settings: { 'message.timestamp.type': 'CreateTime' } }),
    ],
    [
      'small messages',
      'kafka.sizes',
      /small\.events has max\.message\.bytes=100000/,
      () => topicsWith(admin, 'small.', { settings: { 'max.message.bytes': '100000' } }),
    ],
    [
      'a short retention',
      'kafka.retention',
      /short\.events keeps rows for 1\.0 hours/,
      () => topicsWith(admin, 'short.', { settings: { 'retention.ms': '3600000' } }),
    ],
    ['no ClickHouse', 'clickhouse.reached', /127\.0\.0\.1:1/, async () => ({ CLICKHOUSE_URL: NOWHERE })],
    [
      'a wrong password of ClickHouse',
      'clickhouse.reached',
      /CLICKHOUSE_MIGRATE_USER \(sluice_migrate\)/,
      async () => ({ CLICKHOUSE_MIGRATE_PASSWORD: 'another-secret' }),
    ],
    [
      'an account that may not see statements, and so not end them',
      'clickhouse.rights',
      /^lacking lacks SELECT ON system\.processes$/,
      async () => ({ CLICKHOUSE_USER: 'lacking', CLICKHOUSE_PASSWORD: PASSWORD }),
    ],
    [
      'an account that may not change settings',
      'clickhouse.settings',
      /reading.*readonly mode/,
      async () => ({ CLICKHOUSE_USER: 'reading', CLICKHOUSE_PASSWORD: PASSWORD }),
    ],
    [
      'a wrong keys file',
      'keys',
      /keys\.txt is not JSON/,
      async () => {
        const API_KEYS_FILE = join(folder, 'keys.txt');
        await writeFile(API_KEYS_FILE, PASSWORD);
        return { API_KEYS_FILE };
      },
    ],
    [
      'a service that is away',
      'ingest-api.ready',
      /127\.0\.0\.1:1 cannot be reached/,
      async () => ({ INGEST_URL: NOWHERE }),
    ],
  ];

  test.each(variants)('%s', async (_what, check, found, env) => {
    const { wrong, text } = await diagnose(['ingest-api', 'writer'], { ...sound, ...(await env()) });
    expect(wrong.map(({ name }) => name)).toEqual([check]);
    expect(wrong[0]?.found).toMatch(found);
    expect(wrong[0]?.todo).toBeTruthy();
    expect(text).not.toMatch(/secret/);
  });

  test('a balancer in front of two servers, of which each is named by the cluster that one of them knows', async () => {
    const servers = [clickhouse.url, inject('clickhouseUrl')];
    let requests = 0;
    await using router = await startHttpRouter((body) =>
      body.includes('system.clusters') ? clickhouse.url : (servers[requests++ % 2] ?? ''),
    );
    const env = { ...sound, CLICKHOUSE_URL: router.url };
    const { wrong } = await diagnose(['writer'], env);
    expect(wrong).toEqual([
      expect.objectContaining({ name: 'clickhouse.server', found: expect.stringMatching(/several servers answer/) }),
    ]);
    // The account of a writer has no right to see it.
    expect(wrong[0]?.todo).not.toContain('such as');
    const administrator = { ...env, ...ADMINISTRATOR, CLICKHOUSE_MIGRATE_USER: '', CLICKHOUSE_MIGRATE_PASSWORD: '' };
    const { results } = await diagnose(['writer'], administrator);
    const seen = results.find(({ name }) => name === 'clickhouse.server');
    const { port } = new URL(router.url);
    const named = [ADDRESS, REPLICA]
      .toSorted()
      .map((host, index) => ({ name: `a${index + 1}`, url: `http://${host}:${port}` }));
    expect(seen?.todo).toContain(`such as ${JSON.stringify({ servers: named })}`);
  });

  test('a ClickHouse that is too old', async () => {
    const version = await readClickHouse(clickhouse.url, 'SELECT version()');
    const older = version.replace(/^\d+\.\d/, '24.8');
    const asOlder = (piece: Buffer) => Buffer.from(piece.toString('latin1').replaceAll(version, older), 'latin1');
    await using server = await startHttpRouter(() => clickhouse.url, asOlder);
    const { wrong } = await diagnose(['writer'], { ...sound, CLICKHOUSE_URL: server.url });
    expect(wrong).toEqual([
      expect.objectContaining({
        name: 'clickhouse.version',
        found: `${older}, and 25.4 or newer is needed`,
        todo: expect.stringContaining('Upgrade ClickHouse'),
      }),
    ]);
  });

  test('a clock that is ahead', async () => {
    const clock = join(import.meta.dirname, '../kit/shifted-clock.mjs');
    const { code, stdout } = await startDoctor(['--json'], { ...sound, CLOCK_SHIFT_MS: '60000' }, ['--import', clock])
      .ended;
    const { wrong, checks } = JSON.parse(stdout);
    expect([code, wrong]).toEqual([1, 1]);
    expect(checks.filter(({ state }: { state: string }) => state === 'wrong')).toEqual([
      expect.objectContaining({
        name: 'clock',
        found: expect.stringMatching(/(59\.9|60\.0) s ahead of Kafka.*(59\.9|60\.0) s ahead of ClickHouse/),
      }),
    ]);
  });
});

test('on a new Kafka nothing is wrong, and no topic is created', async () => {
  const env = { ...sound, KAFKA_TOPIC_PREFIX: 'new.' };
  const { wrong, notes } = await diagnose(['ingest-api'], env);
  expect(wrong).toEqual([]);
  expect(notes[0]).toMatchObject({
    name: 'kafka.topics',
    found: expect.stringContaining('may be created: new.events'),
  });
  // What they would have, only an account sees that may read the settings of the brokers.
  const ofReplicas = (results: readonly { readonly name: string }[]) =>
    results.find(({ name }) => name === 'kafka.replicas');
  expect(ofReplicas(notes)).toMatchObject({ found: expect.stringMatching(/DescribeConfigs on the cluster/) });
  const withoutLogin = { KAFKA_SASL_MECHANISM: '', KAFKA_SASL_USERNAME: '', KAFKA_SASL_PASSWORD: '' };
  const { results } = await diagnose(['ingest-api'], {
    ...{ ...env, ...withoutLogin },
    KAFKA_BROKERS: kafka.brokers.join(),
  });
  expect(ofReplicas(results)).toMatchObject({
    state: 'ok',
    found: expect.stringMatching(/^new topics would have: new\.events 1, of which 1 in sync/),
  });
  const topics = await withAdmin(admin, (client) => client.listTopics());
  expect(topics.filter((topic) => topic.startsWith('new.'))).toEqual([]);
});

test('an account that may do everything stores a batch in a database of its own, and nothing remains', async () => {
  const administrator = { ...sound, ...ADMINISTRATOR, CLICKHOUSE_MIGRATE_USER: '', CLICKHOUSE_MIGRATE_PASSWORD: '' };
  const { results } = await diagnose(['writer'], administrator);
  expect(results.find(({ name }) => name === 'clickhouse.scratch')?.found).toMatch(/^a batch was stored/);
  expect(await leftovers()).toBe('');
});

test('Ctrl-C in the middle of it ends it, and nothing remains', async () => {
  let interrupt: () => unknown = () => undefined;
  await using router = await startHttpRouter((body) => {
    if (body.startsWith(`INSERT INTO ${DATABASE}_doctor_`)) interrupt();
    return clickhouse.url;
  });
  const env = {
    ...sound,
    ...ADMINISTRATOR,
    CLICKHOUSE_MIGRATE_USER: '',
    CLICKHOUSE_MIGRATE_PASSWORD: '',
    CLICKHOUSE_URL: router.url,
  };
  const { child, ended } = startDoctor(['writer'], env);
  interrupt = () => child.kill('SIGINT');
  const { code, stdout } = await ended;
  expect(code).toBe(130);
  expect(stdout).toMatch(/Interrupted\.\n$/);
  expect(await leftovers()).toBe('');
});

/** The databases that commands have left, and their statements that run, each as a line. */
async function leftovers(): Promise<string> {
  const sql = `SELECT name FROM system.databases WHERE name LIKE '%\\_doctor\\_%'
    UNION ALL SELECT query FROM system.processes WHERE query_id LIKE 'sluice-doctor%'`;
  return await readClickHouse(clickhouse.url, sql);
}
