import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { configSchema as querySchema, webhooksConfigOf } from '@sluice/query-api/config';
import { isReplicated } from '@sluice/shared/config';
import { loadServerConfig, loadServersConfig } from '@sluice/shared/servers/server-config';
import { configSchema as writerSchema } from '@sluice/writer/config';
import { expect, test } from 'vitest';
import { readMergedCompose } from '../kit/merged-compose.ts';

const FOLDER = join(import.meta.dirname, '..', '..', 'deploy', 'clickhouse', 'replicas');
const ENGINES = ['clickhouse', 'clickhouse-2'];

const { base, added, service, environmentOf } = await readMergedCompose('docker-compose.replicas.yml');
const readXml = (name: string) => readFile(join(FOLDER, name), 'utf8');

/** Returns the text of the only element of a name. */
function textOf(xml: string, name: string): string | undefined {
  const found = [...xml.matchAll(new RegExp(`<${name}>([^<]+)</${name}>`, 'g'))];
  return found.length === 1 ? found[0]?.[1] : undefined;
}

test('two writers of one group store at a replica each, and wait for both', () => {
  const found = ['writer', 'writer-2'].map((name) => {
    const { config, server, replicas } = loadServerConfig(writerSchema, environmentOf(name));
    expect(Object.keys(service(name).depends_on ?? {}).sort()).toEqual(['clickhouse', 'clickhouse-2', 'kafka']);
    expect(replicas?.map(({ url }) => new URL(url).hostname)).toEqual(ENGINES);
    return [server?.name, config.CLICKHOUSE_URL, config.CLICKHOUSE_DATABASE, config.KAFKA_GROUP_ID];
  });
  expect(found).toEqual([
    ['r1', 'http://clickhouse:8123', 'sluice', 'sluice-writer'],
    ['r2', 'http://clickhouse-2:8123', 'sluice', 'sluice-writer'],
  ]);
});

test('query-api reads both replicas, and keeps what the console stores at the first one', () => {
  const { config, servers = [] } = loadServersConfig(querySchema, environmentOf('query-api'));
  expect(isReplicated(config)).toBe(true);
  expect(servers.map(({ name, serves }) => [name, serves])).toEqual([
    ['r1', true],
    ['r2', true],
  ]);
  expect(webhooksConfigOf(config)?.CLICKHOUSE_URL).toBe('http://clickhouse:8123/');
});

test('each replica has a name, an address for the other one and data of its own, and finds Keeper', async () => {
  const [clickhouse, keeper] = [await readXml('clickhouse.xml'), await readXml('keeper.xml')];
  const variables = [...clickhouse.matchAll(/<(\w+) from_env="(\w+)"\/>/g)].map(([, element, name]) => [element, name]);
  expect(variables).toEqual([
    ['replica', 'REPLICA'],
    ['interserver_http_host', 'REPLICA_HOST'],
  ]);
  expect(ENGINES.map((name) => service(name).environment['REPLICA'])).toEqual(['r1', 'r2']);
  expect(ENGINES.map((name) => service(name).environment['REPLICA_HOST'])).toEqual(ENGINES);
  expect(textOf(clickhouse, 'port')).toBe(textOf(keeper, 'tcp_port'));
  const [host] = [textOf(clickhouse, 'host')];
  expect(Object.keys(added.services)).toContain(host);
  expect(textOf(keeper, 'hostname')).toBe(host);
  for (const name of ENGINES) {
    expect(service(name).volumes).toContain(
      './deploy/clickhouse/replicas/clickhouse.xml:/etc/clickhouse-server/config.d/replica.xml:ro',
    );
    expect(service(name).depends_on).toEqual({ [host ?? '']: { condition: 'service_healthy' } });
  }
  const { volumes: ofKeeper, image, healthcheck } = service(host ?? '');
  expect([image, healthcheck]).toEqual([base.services['clickhouse']?.image, expect.anything()]);
  expect(ofKeeper).toContain('./deploy/clickhouse/replicas/keeper.xml:/etc/clickhouse-keeper/keeper.xml:ro');
  // An installation without this file has plain tables in the volume of its own.
  const data = [...ENGINES, host ?? ''].map((name) =>
    service(name).volumes?.find((volume) => volume.endsWith(':/var/lib/clickhouse')),
  );
  expect(data).toEqual(
    Object.keys(added.volumes)
      .toSorted()
      .map((volume) => `${volume}:/var/lib/clickhouse`),
  );
});

test('the second ClickHouse and its writer are as the first ones, but for who they are', () => {
  const withoutOwn = (name: string) => {
    const { environment, volumes = [], ...rest } = service(name);
    const { REPLICA: _replica, REPLICA_HOST: _host, ...others } = environment;
    return { ...rest, environment: others, volumes: volumes.filter((volume) => !volume.includes('-data:')).sort() };
  };
  expect(withoutOwn('clickhouse-2')).toEqual(withoutOwn('clickhouse'));
  const { build, ...writer } = service('writer');
  expect(build).toBeDefined();
  expect(service('writer-2')).toEqual({
    ...writer,
    pull_policy: 'never',
    environment: { ...writer.environment, CLICKHOUSE_SERVER: 'r2' },
  });
});

test('Prometheus scrapes both writers', () => {
  const volumes = service('prometheus').volumes;
  expect(volumes).toContain('./deploy/prometheus/targets.mirrors.yml:/etc/prometheus/targets.yml:ro');
});
