import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { z } from 'zod';
import { ConfigError, clickHouseEnv, kafkaEnv } from '../config/config.ts';
import { loadServerConfig, serverAt, serverEnv } from './server-config.ts';
import type { Server } from './servers-file.ts';

const schema = z.object({
  ...clickHouseEnv,
  ...serverEnv,
  KAFKA_PARTITIONS: kafkaEnv.KAFKA_PARTITIONS,
  KAFKA_GROUP_ID: z.string().default('sluice-writer'),
});

let folder: string;
let file: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'servers-'));
  file = await write(
    { name: 'a1', url: 'http://a1:8123', group: 'sluice-writer' },
    { name: 'a2', url: 'http://a2:8123' },
  );
});
afterAll(() => rm(folder, { recursive: true }));

async function write(...servers: object[]): Promise<string> {
  const path = join(folder, `${servers.length}-${JSON.stringify(servers).length}.json`);
  await writeFile(path, JSON.stringify({ servers }));
  return path;
}

function errorsOf(env: Readonly<Record<string, string>>): readonly string[] {
  try {
    loadServerConfig(schema, env);
    return [];
  } catch (error) {
    if (error instanceof ConfigError) return error.errors;
    throw error;
  }
}

test('without a file a process has the server of CLICKHOUSE_URL, as ever', () => {
  const { config, server } = loadServerConfig(schema, { CLICKHOUSE_URL: 'http://one:8123' });
  expect(server).toBeUndefined();
  expect(config).toMatchObject({ CLICKHOUSE_URL: 'http://one:8123', KAFKA_GROUP_ID: 'sluice-writer' });
});

test('with a file it has the address, the database and the group of its server', () => {
  const env = { CLICKHOUSE_SERVERS_FILE: file, KAFKA_GROUP_ID: 'own', CLICKHOUSE_DATABASE: 'events' };
  const of = (name: string) => loadServerConfig(schema, { ...env, CLICKHOUSE_SERVER: name }).config;
  const database = { CLICKHOUSE_DATABASE: 'events' };
  expect(of('a1')).toMatchObject({ ...database, CLICKHOUSE_URL: 'http://a1:8123', KAFKA_GROUP_ID: 'sluice-writer' });
  expect(of('a2')).toMatchObject({ ...database, CLICKHOUSE_URL: 'http://a2:8123', KAFKA_GROUP_ID: 'own.a2' });
});

test('replicas have one group, and any of them will do', async () => {
  const path = await write({ name: 'r1', url: 'http://r1:8123' }, { name: 'r2', url: 'http://r2:8123' });
  const env = { CLICKHOUSE_REPLICATION: 'replicated', CLICKHOUSE_SERVERS_FILE: path };
  const { config, server, replicas } = loadServerConfig(schema, { ...env, CLICKHOUSE_SERVER: 'r2' });
  expect(config).toMatchObject({ CLICKHOUSE_URL: 'http://r2:8123', KAFKA_GROUP_ID: 'sluice-writer' });
  expect([server?.name, replicas?.map(({ name }) => name)]).toEqual(['r2', ['r1', 'r2']]);
  expect(['r1', 'r2']).toContain(loadServerConfig(schema, env).server?.name);
  expect(
    loadServerConfig(schema, { ...env, CLICKHOUSE_REPLICATION: 'none', CLICKHOUSE_SERVER: 'r1' }).replicas,
  ).toBeUndefined();
});

test('what replicas cannot have is refused', async () => {
  const env = { CLICKHOUSE_REPLICATION: 'replicated' };
  expect(errorsOf({ ...env, CLICKHOUSE_URL: 'http://one:8123' })).toEqual([
    'CLICKHOUSE_SERVERS_FILE: is required with CLICKHOUSE_REPLICATION, and names the replicas',
  ]);
  const r1 = { name: 'r1', url: 'http://r1:8123', group: 'g', partitions: '0-47', database: 'd' };
  expect(errorsOf({ ...env, CLICKHOUSE_SERVERS_FILE: await write(r1) })).toEqual(
    ['group', 'database'].map((member) =>
      expect.stringContaining(`servers.0.${member}: replicas have no ${member} of their own (CLICKHOUSE_REPLICATION)`),
    ),
  );
  expect(errorsOf({ CLICKHOUSE_REPLICATION: 'shared', CLICKHOUSE_SERVERS_FILE: 'servers.json' })).toEqual([
    'CLICKHOUSE_SERVERS_FILE: CLICKHOUSE_URL leads to all replicas with CLICKHOUSE_REPLICATION=shared',
  ]);
  expect(errorsOf({ CLICKHOUSE_REPLICATION: 'shared' })).toEqual(['CLICKHOUSE_URL: is required']);
  expect(errorsOf({ CLICKHOUSE_REPLICATION: 'yes', CLICKHOUSE_URL: 'http://one:8123' })).toEqual([
    'CLICKHOUSE_REPLICATION: must be none, replicated or shared',
  ]);
});

test('replicas of one range are those of a shard, with a group of their own', async () => {
  const placed = (name: string, partitions: string, more = {}) => ({
    ...{ name, url: `http://${name}:8123`, partitions },
    ...more,
  });
  const shards = [placed('a1', '0-2'), placed('a2', '0-2'), placed('b1', '3-5'), placed('b2', '3-5')];
  const env = { CLICKHOUSE_REPLICATION: 'replicated', CLICKHOUSE_SERVERS_FILE: await write(...shards) };
  const { config, server, replicas } = loadServerConfig(schema, {
    ...env,
    KAFKA_PARTITIONS: '6',
    CLICKHOUSE_SERVER: 'b2',
  });
  expect(config).toMatchObject({ CLICKHOUSE_URL: 'http://b2:8123', KAFKA_GROUP_ID: 'sluice-writer.3-5' });
  expect([server?.name, replicas?.map(({ name }) => name)]).toEqual(['b2', ['b1', 'b2']]);
  // Which partitions a writer stores is not left to chance.
  expect(errorsOf(env)).toEqual([expect.stringContaining('CLICKHOUSE_SERVER: is required')]);
});

test('everything that is wrong with the ranges of replicas is named at once', async () => {
  const entries = [
    { name: 'a1', url: 'http://a1:8123', partitions: '0-2' },
    { name: 'a2', url: 'http://a2:8123', group: 'g' },
    { name: 'b1', url: 'http://b1:8123', partitions: '4-5' },
    { name: 'b2', url: 'http://b2:8123', partitions: '4-6', serves: false, database: 'd' },
  ];
  const env = { CLICKHOUSE_REPLICATION: 'replicated', CLICKHOUSE_SERVERS_FILE: await write(...entries) };
  expect(errorsOf({ ...env, CLICKHOUSE_SERVER: 'a1' })).toEqual([
    expect.stringContaining('a1 (0-2) and a2 (all) share partitions'),
    expect.stringContaining('a2 (all) and b1 (4-5) share partitions'),
    expect.stringContaining('a2 (all) and b2 (4-6) share partitions'),
    expect.stringContaining('servers.1.group: replicas have no group of their own'),
    expect.stringContaining('servers.3.database: replicas have no database of their own'),
  ]);
});

test('everything that is wrong is named at once', async () => {
  expect(errorsOf({ CLICKHOUSE_SERVER: 'a1', KAFKA_PARTITIONS: 'x' })).toEqual([
    'CLICKHOUSE_SERVERS_FILE: is required with CLICKHOUSE_SERVER',
    'KAFKA_PARTITIONS: must be a number',
  ]);
  const both = { CLICKHOUSE_SERVERS_FILE: file, CLICKHOUSE_URL: 'http://x', KAFKA_PARTITIONS: '0' };
  expect(errorsOf(both)).toEqual([
    'CLICKHOUSE_URL: CLICKHOUSE_SERVERS_FILE has the addresses; remove one of them',
    'CLICKHOUSE_SERVER: is required, which has a1, a2',
    'KAFKA_PARTITIONS: must be at least 1',
  ]);
  expect(errorsOf({ CLICKHOUSE_SERVERS_FILE: file, CLICKHOUSE_SERVER: 'a3' })).toEqual([
    'CLICKHOUSE_SERVER: is not in the file of servers, which has a1, a2',
  ]);
  const missing = join(folder, 'missing.json');
  expect(errorsOf({ CLICKHOUSE_SERVERS_FILE: missing, CLICKHOUSE_SERVER: 'a1' })).toEqual([
    `CLICKHOUSE_SERVERS_FILE: ${missing} does not exist`,
  ]);
  const broken = await write({ name: 'A', url: 'x' });
  expect(errorsOf({ CLICKHOUSE_SERVERS_FILE: broken, CLICKHOUSE_SERVER: 'a1' })).toEqual([
    `CLICKHOUSE_SERVERS_FILE: ${broken} servers.0.name: must be 1 to 32 small letters, digits and hyphens`,
    `CLICKHOUSE_SERVERS_FILE: ${broken} servers.0.url: must be an http:// or https:// address`,
  ]);
});

test('partitions that the topics do not have are refused', async () => {
  const ranges = await write(
    { name: 'a1', url: 'http://a1', partitions: '0-23' },
    { name: 'b1', url: 'http://b1', partitions: '24-47' },
  );
  const env = { CLICKHOUSE_SERVERS_FILE: ranges, CLICKHOUSE_SERVER: 'b1' };
  expect(errorsOf({ ...env, KAFKA_PARTITIONS: '48' })).toEqual([]);
  expect(errorsOf({ ...env, KAFKA_PARTITIONS: '24' })).toEqual([
    'CLICKHOUSE_SERVERS_FILE: b1 has the partitions up to 47, and KAFKA_PARTITIONS is 24',
  ]);
});

test('a server is known by its address, with a login or without', () => {
  const [a, b] = ['a', 'b'].map((name) => ({ name, url: `http://${name}:8123` })) as unknown as Server[];
  const servers = [a, b] as Server[];
  expect(serverAt(servers, 'http://user:secret@b:8123/?clickhouse_setting_x=1')).toBe(b);
  expect(serverAt(servers, 'http://other:8123')).toBeUndefined();
  expect(serverAt([], 'http://a:8123')).toBeUndefined();
});
