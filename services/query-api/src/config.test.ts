import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { loadQueryConfig, sqlConfigOf, webhooksConfigOf, webhooksServerOf } from './config.ts';

const ENV = { CLICKHOUSE_URL: 'http://127.0.0.1:8123', API_KEYS_FILE: 'keys.json' };

test('the cluster of an earlier version is named, beside everything else that is wrong', () => {
  expect(loadQueryConfig(ENV).config.CLICKHOUSE_URL).toBe(ENV.CLICKHOUSE_URL);
  const errorOf = (env: Readonly<Record<string, string>>) => {
    try {
      return loadQueryConfig(env);
    } catch (error) {
      return (error as Error).message.split('\n').slice(1);
    }
  };
  const gone =
    '  CLICKHOUSE_CLUSTER: is not supported any more; CLICKHOUSE_SERVERS_FILE names several ClickHouse servers';
  expect(errorOf({ ...ENV, CLICKHOUSE_CLUSTER: 'sluice' })).toEqual([gone]);
  expect(errorOf({ ...ENV, CLICKHOUSE_CLUSTER: 'sluice', PORT: 'x' })).toEqual([
    gone,
    expect.stringMatching(/^ {2}PORT: /),
  ]);
});

test('where replicas share the rows, there are no statements of clients', () => {
  const shared = { ...ENV, CLICKHOUSE_REPLICATION: 'shared' };
  expect(loadQueryConfig(shared).config.CLICKHOUSE_REPLICATION).toBe('shared');
  expect(() => loadQueryConfig({ ...shared, CLICKHOUSE_SQL_USER: 'sluice_sql' })).toThrow(
    /CLICKHOUSE_SQL_USER: cannot be used/,
  );
});

test('statements of clients have a login of their own, and are off without it', () => {
  const configOf = (env: Readonly<Record<string, string>>) => sqlConfigOf(loadQueryConfig({ ...ENV, ...env }).config);
  expect(configOf({ CLICKHOUSE_USER: 'sluice_query', CLICKHOUSE_PASSWORD: 'secret' })).toBeUndefined();
  const login = { CLICKHOUSE_SQL_USER: 'sluice_sql', CLICKHOUSE_SQL_PASSWORD: 'other' };
  expect(
    configOf({ ...login, CLICKHOUSE_URL: 'http://u:secret@127.0.0.1:8123', CLICKHOUSE_DATABASE: 'd' }),
  ).toMatchObject({
    ...{ CLICKHOUSE_URL: 'http://127.0.0.1:8123/', CLICKHOUSE_DATABASE: 'd_sql' },
    ...{ CLICKHOUSE_USER: 'sluice_sql', CLICKHOUSE_PASSWORD: 'other' },
  });
  expect(configOf({ ...login, CLICKHOUSE_SQL_DATABASE: 'views' })?.CLICKHOUSE_DATABASE).toBe('views');
  expect(() => loadQueryConfig({ ...ENV, CLICKHOUSE_SQL_PASSWORD: 'other' })).toThrow(
    'CLICKHOUSE_SQL_USER: is required',
  );
});

test('the state of webhooks has a login, a server and a database of its own, and is off without the login', () => {
  const env = { ...ENV, CLICKHOUSE_DATABASE: 'd', CLICKHOUSE_USER: 'sluice_query', CLICKHOUSE_PASSWORD: 'secret' };
  const configOf = (more: Readonly<Record<string, string>>) =>
    webhooksConfigOf(loadQueryConfig({ ...env, ...more }).config);
  expect(configOf({})).toBeUndefined();
  const login = { CLICKHOUSE_WEBHOOKS_USER: 'sluice_webhooks', CLICKHOUSE_WEBHOOKS_PASSWORD: 'other' };
  expect(configOf(login)).toMatchObject({
    ...{ CLICKHOUSE_URL: 'http://127.0.0.1:8123/', CLICKHOUSE_DATABASE: 'd' },
    ...{ CLICKHOUSE_USER: 'sluice_webhooks', CLICKHOUSE_PASSWORD: 'other' },
  });
  const elsewhere = { CLICKHOUSE_WEBHOOKS_URL: 'http://127.0.0.2:8123', CLICKHOUSE_WEBHOOKS_DATABASE: 'state' };
  expect(configOf({ ...login, ...elsewhere })).toMatchObject({
    ...{ CLICKHOUSE_URL: 'http://127.0.0.2:8123/', CLICKHOUSE_DATABASE: 'state' },
  });
});

test('of replicas, the state of webhooks is at a server of the file, and not behind an address of several', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-servers-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  const path = join(folder, 'servers.json');
  const servers = ['r1', 'r2'].map((name) => ({ name, url: `http://${name}:8123` }));
  await writeFile(path, JSON.stringify({ servers }));
  const env = { API_KEYS_FILE: 'keys.json', CLICKHOUSE_SERVERS_FILE: path, CLICKHOUSE_REPLICATION: 'replicated' };
  const serverOf = (more: Readonly<Record<string, string>> = {}) =>
    webhooksServerOf(loadQueryConfig({ ...env, ...more }))?.name;
  expect(serverOf()).toBe('r1');
  expect(serverOf({ CLICKHOUSE_WEBHOOKS_URL: 'http://r2:8123' })).toBe('r2');
  expect(() => serverOf({ CLICKHOUSE_WEBHOOKS_URL: 'http://all:8123' })).toThrow(
    'CLICKHOUSE_WEBHOOKS_URL: must be the address of one server',
  );
});
