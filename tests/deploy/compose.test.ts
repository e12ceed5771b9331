import { readFile } from 'node:fs/promises';
import { configSchema as ingestSchema } from '@sluice/ingest-api/config';
import { configSchema as querySchema } from '@sluice/query-api/config';
import { loadConfig } from '@sluice/shared/config';
import { configSchema as writerSchema } from '@sluice/writer/config';
import { beforeAll, describe, expect, test } from 'vitest';
import { parse } from 'yaml';

interface ComposeService {
  image?: string;
  build?: { context: string; args: { SERVICE: string } };
  environment: Record<string, string>;
  ports?: string[];
  volumes?: string[];
  healthcheck?: unknown;
  depends_on?: Record<string, { condition: string }>;
  deploy?: { resources: { limits: { memory: string } } };
}

const SCHEMAS = { 'ingest-api': ingestSchema, writer: writerSchema, 'query-api': querySchema } as const;
const NAMES = Object.keys(SCHEMAS) as (keyof typeof SCHEMAS)[];

let compose: { services: Record<string, ComposeService>; volumes: Record<string, unknown> };
let dockerfile: string;

beforeAll(async () => {
  const root = new URL('../../', import.meta.url);
  compose = parse(await readFile(new URL('docker-compose.yml', root), 'utf8'), { merge: true });
  dockerfile = await readFile(new URL('Dockerfile', root), 'utf8');
});

function service(name: string): ComposeService {
  const found = compose.services[name];
  if (!found) throw new Error(`docker-compose.yml has no service ${name}`);
  return found;
}

/** What compose makes of `${NAME:-default}` when nothing is set. */
function environmentOf(name: string): Record<string, string> {
  const entries = Object.entries(service(name).environment);
  return Object.fromEntries(entries.map(([key, value]) => [key, value.replace(/\$\{[A-Z_]+:-([^}]*)\}/g, '$1')]));
}

describe.each(NAMES)('%s', (name) => {
  test('is configured with variables that it knows, and accepts', () => {
    const environment = environmentOf(name);
    expect(Object.keys(SCHEMAS[name].shape)).toEqual(expect.arrayContaining(Object.keys(environment)));
    const config = loadConfig(SCHEMAS[name], { HOST: '0.0.0.0', ...environment });
    expect(config.PORT).toBe(8080);
  });

  test('is built from the Dockerfile, bounded in memory, and waits for what it needs', () => {
    const { build, deploy, depends_on } = service(name);
    expect(build).toEqual({ context: '.', args: { SERVICE: name } });
    expect(deploy?.resources.limits.memory).toMatch(/^\d+[mg]$/);
    const needs = { 'ingest-api': ['kafka'], writer: ['kafka', 'clickhouse'], 'query-api': ['clickhouse'] }[name];
    expect(Object.keys(depends_on ?? {})).toEqual(needs);
  });

  test('reaches the engines at the addresses that they listen on', () => {
    const environment = environmentOf(name);
    const kafka = environmentOf('kafka');
    const clickhouse = environmentOf('clickhouse');
    if ('KAFKA_BROKERS' in environment) {
      expect(kafka['KAFKA_ADVERTISED_LISTENERS']).toBe(`PLAINTEXT://${environment['KAFKA_BROKERS']}`);
    }
    if ('CLICKHOUSE_URL' in environment) {
      expect(environment['CLICKHOUSE_URL']).toBe('http://clickhouse:8123');
      for (const variable of ['CLICKHOUSE_USER', 'CLICKHOUSE_PASSWORD'])
        expect(environment[variable]).toBe(clickhouse[variable]);
      expect(environment['CLICKHOUSE_DATABASE']).toBe(clickhouse['CLICKHOUSE_DB']);
    }
  });
});

test('the two APIs are published on loopback, where npm start has them, and nothing else is', () => {
  const published = Object.entries(compose.services).flatMap(([name, { ports }]) =>
    (ports ?? []).map((port) => [name, port]),
  );
  expect(published).toEqual([
    ['ingest-api', '127.0.0.1:4000:8080'],
    ['query-api', '127.0.0.1:4001:8080'],
  ]);
});

test('the engines are official images of the versions that the local engines have, with volumes and health checks', () => {
  expect(service('kafka').image).toBe('apache/kafka:4.3.0');
  expect(service('clickhouse').image).toBe('clickhouse/clickhouse-server:26.7');
  for (const name of ['kafka', 'clickhouse']) {
    expect(service(name).healthcheck).toBeDefined();
    expect(service(name).deploy?.resources.limits.memory).toMatch(/^\d+g$/);
    const [volume] = service(name).volumes?.[0]?.split(':') ?? [];
    expect(Object.keys(compose.volumes)).toContain(volume);
  }
});

test('services that check keys read the file that the keys command writes', () => {
  const path = environmentOf('keys')['API_KEYS_FILE'];
  for (const name of ['ingest-api', 'query-api']) {
    expect(environmentOf(name)['API_KEYS_FILE']).toBe(path);
    expect(service(name).volumes).toEqual(['keys:/etc/sluice:ro']);
  }
  expect(service('keys').volumes).toEqual(['keys:/etc/sluice']);
});

test('the image runs as an ordinary user and has a health check', () => {
  expect(dockerfile).toMatch(/^USER node$/m);
  expect(dockerfile).toMatch(/^HEALTHCHECK /m);
});

test('the Dockerfile and package.json name the same pnpm', async () => {
  const manifest = JSON.parse(await readFile(new URL('../../package.json', import.meta.url), 'utf8')) as {
    engines: { pnpm: string };
  };
  expect(dockerfile).toContain(`pnpm@${manifest.engines.pnpm}`);
});
