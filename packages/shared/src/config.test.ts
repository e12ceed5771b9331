import { expect, test } from 'vitest';
import { z } from 'zod';
import { ConfigError, clickHouseEnv, integer, kafkaEnv, loadConfig, serviceEnv } from './config.ts';

const schema = z.object({ ...serviceEnv(4000), ...kafkaEnv, ...clickHouseEnv, SIZE_MAX: integer(1, 10).default(5) });

test('defaults are filled in, and an empty variable counts as unset', () => {
  const config = loadConfig(schema, {
    KAFKA_BROKERS: 'a:1, b:2',
    CLICKHOUSE_URL: 'http://c:8123',
    PORT: '',
    SIZE_MAX: '7',
    ALLOWED_HOSTS: 'localhost, Sluice.example',
  });
  expect(config.ALLOWED_HOSTS).toEqual(['localhost', 'Sluice.example']);
  expect(config).toMatchObject({ PORT: 4000, KAFKA_BROKERS: ['a:1', 'b:2'], SIZE_MAX: 7, EXIT_ON_STDIN_END: false });
});

test('every variable that is wrong is named, and no value is shown', () => {
  const env = {
    PORT: 'secret-a',
    SIZE_MAX: '11',
    CLICKHOUSE_DATABASE: 'drop table',
    CLICKHOUSE_URL: 'secret-b',
    ALLOWED_HOSTS: 'secret:1',
  };
  const load = () => loadConfig(schema, env);
  expect(load).toThrow(ConfigError);
  try {
    load();
  } catch (error) {
    const { errors, message } = error as ConfigError;
    expect(errors.map((error) => error.split(':')[0]).sort()).toEqual([
      'ALLOWED_HOSTS',
      'CLICKHOUSE_DATABASE',
      'CLICKHOUSE_URL',
      'KAFKA_BROKERS',
      'PORT',
      'SIZE_MAX',
    ]);
    expect(message).not.toMatch(/secret|drop/);
  }
});
