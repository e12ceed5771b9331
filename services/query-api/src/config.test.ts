import { expect, test } from 'vitest';
import { loadQueryConfig } from './config.ts';

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
