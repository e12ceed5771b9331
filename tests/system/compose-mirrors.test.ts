import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { configSchema as querySchema, webhooksConfigOf } from '@sluice/query-api/config';
import { loadServerConfig, loadServersConfig } from '@sluice/shared/servers/server-config';
import { configSchema as writerSchema } from '@sluice/writer/config';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { readMergedCompose } from '../kit/merged-compose.ts';

const ROOT = join(import.meta.dirname, '..', '..');

const { base, added, service, environmentOf } = await readMergedCompose('docker-compose.mirrors.yml');

test('each of two writers has a ClickHouse of its own; the first one is that of an installation without mirrors', () => {
  const found = ['writer', 'writer-2'].map((name) => {
    const { config, server } = loadServerConfig(writerSchema, environmentOf(name));
    const engine = new URL(config.CLICKHOUSE_URL).hostname;
    expect(service(engine).healthcheck).toBeDefined();
    expect(Object.keys(service(name).depends_on ?? {})).toEqual(['kafka', engine]);
    return [server?.name, config.CLICKHOUSE_URL, config.CLICKHOUSE_DATABASE, config.KAFKA_GROUP_ID];
  });
  expect(found).toEqual([
    ['a1', base.services['writer']?.environment['CLICKHOUSE_URL'], 'sluice', 'sluice-writer'],
    ['a2', 'http://clickhouse-2:8123', 'sluice', 'sluice-writer.a2'],
  ]);
});

test('query-api stores webhooks on the first one', () => {
  const { config } = loadServersConfig(querySchema, environmentOf('query-api'));
  expect(webhooksConfigOf(config)?.CLICKHOUSE_URL).toBe(`${base.services['writer']?.environment['CLICKHOUSE_URL']}/`);
});

test('query-api reads both', () => {
  const { servers = [] } = loadServersConfig(querySchema, environmentOf('query-api'));
  expect(servers.map(({ name, serves }) => [name, serves])).toEqual([
    ['a1', true],
    ['a2', true],
  ]);
  expect(service('query-api').volumes).toContain('keys:/etc/sluice');
});

test('the second ClickHouse and its writer are as the first ones, but for their data and their name', () => {
  const { volumes, ...clickhouse } = service('clickhouse-2');
  const { volumes: first = [], ...firstClickhouse } = service('clickhouse');
  expect(clickhouse).toEqual(firstClickhouse);
  expect(volumes).toEqual(first.map((volume) => volume.replace(/^clickhouse-data:/, 'clickhouse-2-data:')));
  expect(Object.keys(added.volumes)).toEqual(['clickhouse-2-data']);

  const { build, ...writer } = service('writer');
  expect(build).toBeDefined();
  expect(service('writer-2')).toEqual({
    ...writer,
    pull_policy: 'never',
    environment: { ...writer.environment, CLICKHOUSE_SERVER: 'a2' },
    depends_on: { ...service('writer-2').depends_on },
  });
});

test('Prometheus scrapes both writers, and otherwise what it scrapes without mirrors', async () => {
  const targetsOf = async (name: string) => parse(await readFile(join(ROOT, 'deploy/prometheus', name), 'utf8'));
  const without = await targetsOf('targets.compose.yml');
  expect(service('prometheus').volumes).toContain(
    './deploy/prometheus/targets.mirrors.yml:/etc/prometheus/targets.yml:ro',
  );
  expect(await targetsOf('targets.mirrors.yml')).toEqual(
    without.map((group: { targets: string[]; labels: { job: string } }) =>
      group.labels.job === 'sluice-writer' ? { ...group, targets: [...group.targets, 'writer-2:8080'] } : group,
    ),
  );
});
