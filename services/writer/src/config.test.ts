import { loadConfig } from '@sluice/shared/config';
import { expect, test } from 'vitest';
import { configSchema } from './config.ts';

test('replicas have no cold volume', () => {
  const env = { KAFKA_BROKERS: 'k:1', CLICKHOUSE_URL: 'http://c:8123', CLICKHOUSE_REPLICATION: 'replicated' };
  expect(loadConfig(configSchema, env).EVENTS_COLD_AFTER_DAYS).toBeUndefined();
  expect(() => loadConfig(configSchema, { ...env, EVENTS_COLD_AFTER_DAYS: '30' })).toThrow(
    /EVENTS_COLD_AFTER_DAYS: cannot be used where tables are replicated/,
  );
  const one = loadConfig(configSchema, { ...env, CLICKHOUSE_REPLICATION: 'none', EVENTS_COLD_AFTER_DAYS: '30' });
  expect(one.EVENTS_COLD_AFTER_DAYS).toBe(30);
});

test('replicas that share the rows have no cold volume', () => {
  const env = { KAFKA_BROKERS: 'k:1', CLICKHOUSE_URL: 'http://c:8123', CLICKHOUSE_REPLICATION: 'shared' };
  expect(loadConfig(configSchema, env).CLICKHOUSE_REPLICATION).toBe('shared');
  expect(() => loadConfig(configSchema, { ...env, EVENTS_COLD_AFTER_DAYS: '30' })).toThrow(
    /EVENTS_COLD_AFTER_DAYS: cannot be used where replicas share the rows/,
  );
});
