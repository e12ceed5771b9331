import { expect, test } from 'vitest';
import { readSettings } from './settings.ts';

test('an empty environment gives the documented defaults', () => {
  const { settings, faults } = readSettings({ INGEST_PORT: '' }, '/repo');
  expect(faults).toEqual([]);
  expect(settings).toEqual({
    dataDir: '/repo/.sluice',
    logDir: '/repo/.sluice/logs',
    logs: 'files',
    devKey: undefined,
    ports: { ingest: 4000, query: 4001, writer: 4002, kafka: 4092, clickhouse: 4123 },
    externalKafka: undefined,
    externalClickHouse: undefined,
  });
});

test("Trench's interface has no port, and is not started, unless it is given one of its own", () => {
  expect(readSettings({ TRENCH_PORT: '' }, '/repo').settings.ports.trench).toBeUndefined();
  expect(readSettings({ TRENCH_PORT: '4003' }, '/repo').settings.ports.trench).toBe(4003);
  expect(readSettings({ TRENCH_PORT: 'yes' }, '/repo').faults).toEqual([expect.stringContaining('TRENCH_PORT must')]);
  expect(readSettings({ TRENCH_PORT: '4000' }, '/repo').faults).toEqual([expect.stringContaining('INGEST_PORT')]);
});

test('every wrong variable is named at once', () => {
  const env = {
    INGEST_PORT: 'http',
    QUERY_PORT: '70000',
    WRITER_PORT: '4123',
    KAFKA_PORT: '-1',
    SLUICE_DEV_KEY: 'too short',
    KAFKA_BROKERS: 'kafka',
    CLICKHOUSE_URL: 'clickhouse:8123',
  };
  const { faults } = readSettings(env, '/repo');
  const named = [...Object.keys(env).filter((name) => name !== 'WRITER_PORT'), 'CLICKHOUSE_PORT and WRITER_PORT'];
  for (const name of named) expect(faults.filter((fault) => fault.startsWith(name))).toHaveLength(1);
  expect(faults).toHaveLength(named.length);
});

test.each(['x'.repeat(15), 'x'.repeat(201), 'sixteen letters, spaced', 'ключ-из-шестнадцати'])(
  'SLUICE_DEV_KEY cannot be %s',
  (SLUICE_DEV_KEY) => {
    expect(readSettings({ SLUICE_DEV_KEY }, '/repo').faults).toHaveLength(1);
  },
);
