import { expect, test } from 'vitest';
import { loadQueryConfig, sqlConfigOf, webhooksConfigOf } from './config.ts';

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
