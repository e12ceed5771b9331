import { expect, test } from 'vitest';
import { loadQueryConfig } from '../config.ts';
import { querySettings } from './query-settings.ts';

test('where replicas share the rows, each query finds what was committed before it', () => {
  const settingOf = (replication: string) => {
    const env = { CLICKHOUSE_URL: 'http://c:8123', API_KEYS_FILE: 'keys.json', CLICKHOUSE_REPLICATION: replication };
    return querySettings(loadQueryConfig(env).config)['select_sequential_consistency'];
  };
  expect(settingOf('shared')).toBe('1');
  expect(settingOf('none')).toBe('0');
});
