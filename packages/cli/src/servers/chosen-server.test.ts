import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { makeTempDir } from '@sluice/local-stack/testing/temp-dir';
import { ConfigError, clickHouseEnv, groupEnv } from '@sluice/shared/config';
import { ArgumentsError } from '@sluice/shared/config/command-line';
import { serverEnv } from '@sluice/shared/servers/server-config';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { loadAllServers, loadChosenServer, loadServersOf, refuseReplicas, refuseShared } from './chosen-server.ts';

const schema = z.object({ ...clickHouseEnv, ...groupEnv, ...serverEnv });

async function withFile(names: readonly string[], work: (env: Readonly<Record<string, string>>) => void) {
  await using folder = await makeTempDir();
  const path = join(folder.path, 'servers.json');
  await writeFile(path, JSON.stringify({ servers: names.map((name) => ({ name, url: `http://${name}` })) }));
  work({ CLICKHOUSE_SERVERS_FILE: path });
}

test('of several servers, one is named by the option or the environment', async () => {
  await withFile(['a1', 'a2'], (env) => {
    const chosen = (name: string, more = {}) => {
      const { config, server } = loadChosenServer(schema, { ...env, ...more }, name);
      return [server?.name, config.CLICKHOUSE_URL, config.KAFKA_GROUP_ID];
    };
    expect(chosen('a2')).toEqual(['a2', 'http://a2', 'sluice-writer.a2']);
    expect(chosen('', { CLICKHOUSE_SERVER: 'a1' })).toEqual(['a1', 'http://a1', 'sluice-writer.a1']);
    expect(chosen('a2', { CLICKHOUSE_SERVER: 'a1' })[0]).toBe('a2');
    const refused = (name: string) => () => loadChosenServer(schema, env, name);
    expect(refused('')).toThrow(new ArgumentsError('--server is needed: one of a1, a2.'));
    expect(refused('a3')).toThrow(
      new ArgumentsError('There is no server a3 in CLICKHOUSE_SERVERS_FILE, which has a1, a2.'),
    );
  });
});

test('of replicas any will do, and some commands are refused', async () => {
  await withFile(['r1', 'r2'], (env) => {
    const replicated = { ...env, CLICKHOUSE_REPLICATION: 'replicated' };
    expect(loadChosenServer(schema, replicated, '').server?.name).toBe('r1');
    expect(loadChosenServer(schema, replicated, 'r2').config.KAFKA_GROUP_ID).toBe('sluice-writer');
    const message = 'servers copy cannot be used where ClickHouse replicates the tables. Wait.';
    expect(() => refuseReplicas(replicated, 'servers copy', 'Wait.')).toThrow(new ArgumentsError(message));
    expect(() => refuseReplicas(env, 'servers copy', 'Wait.')).not.toThrow();
  });
});

test('where replicas share the rows, some commands are refused', () => {
  const message = 'backup cannot be used where replicas share the rows of tables. Use BACKUP.';
  const refused = () => refuseShared({ CLICKHOUSE_REPLICATION: 'shared' }, 'backup', 'Use BACKUP.');
  expect(refused).toThrow(new ArgumentsError(message));
  expect(() => refuseShared({}, 'backup', 'Use BACKUP.')).not.toThrow();
});

test('of one server, it need not be named', async () => {
  await withFile(['a1'], (env) => expect(loadChosenServer(schema, env, '').server?.name).toBe('a1'));
  const env = { CLICKHOUSE_URL: 'http://one' };
  expect(loadChosenServer(schema, env, '')).toMatchObject({
    config: { CLICKHOUSE_URL: 'http://one', KAFKA_GROUP_ID: 'sluice-writer' },
    server: undefined,
  });
  expect(() => loadChosenServer(schema, env, 'a1')).toThrow(/--server is of use only with CLICKHOUSE_SERVERS_FILE/);
});

test('what works on all servers does so whatever server the environment has, unless the option names one', async () => {
  await withFile(['a1', 'a2'], (env) => {
    const own = { ...env, CLICKHOUSE_SERVER: 'a1' };
    const names = (name: string) => loadServersOf(schema, own, name).map(({ server }) => server?.name);
    expect(names('')).toEqual(['a1', 'a2']);
    expect(names('a2')).toEqual(['a2']);
  });
  expect(loadAllServers(schema, { CLICKHOUSE_URL: 'http://one' })).toHaveLength(1);
});

test('what is wrong with the file and the environment comes first, all of it', async () => {
  await withFile(['A', 'a2'], (env) => {
    const load = () => loadChosenServer(schema, { ...env, CLICKHOUSE_URL: 'http://x', CLICKHOUSE_DATABASE: '-' }, 'a3');
    expect(load).toThrow(ConfigError);
    expect(load).toThrow(/CLICKHOUSE_URL: CLICKHOUSE_SERVERS_FILE has the addresses.*servers\.0\.name.*DATABASE/s);
  });
});
