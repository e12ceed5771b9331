import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { access, readFile, symlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { configSchema as ingestSchema } from '@sluice/ingest-api/config';
import { findFreePorts } from '@sluice/local-stack/ports';
import { makeTempDir } from '@sluice/local-stack/testing/temp-dir';
import { configSchema as querySchema } from '@sluice/query-api/config';
import { loadConfig } from '@sluice/shared/config';
import { configSchema as trenchSchema } from '@sluice/trench-api/config';
import { configSchema as writerSchema } from '@sluice/writer/config';
import { beforeAll, describe, expect, inject, test } from 'vitest';
import { parse } from 'yaml';
import { resolveVariables } from '../kit/compose-variables.ts';

interface ComposeService {
  image?: string;
  build?: { context: string; args: { SERVICE: string } };
  entrypoint?: string[];
  environment: Record<string, string>;
  ports?: string[];
  volumes?: string[];
  healthcheck?: { test: [string, ...string[]] };
  pull_policy?: string;
  profiles?: string[];
  logging?: { driver: string; options: Record<string, string> };
  depends_on?: Record<string, { condition: string }> | string[];
  deploy?: { resources: { limits: { memory: string } } };
}

const SCHEMAS = {
  'ingest-api': ingestSchema,
  writer: writerSchema,
  'query-api': querySchema,
  'trench-api': trenchSchema,
} as const;
const NAMES = Object.keys(SCHEMAS) as (keyof typeof SCHEMAS)[];

const ROOT = new URL('../../', import.meta.url);

let compose: { services: Record<string, ComposeService>; volumes: Record<string, unknown> };

beforeAll(async () => {
  compose = parse(await readFile(new URL('docker-compose.yml', ROOT), 'utf8'), { merge: true });
});

function service(name: string): ComposeService {
  const found = compose.services[name];
  if (!found) throw new Error(`docker-compose.yml has no service ${name}`);
  return found;
}

/** The environment, with the variables that are given. */
function environmentOf(name: string, given: Readonly<Record<string, string>> = {}): Record<string, string> {
  const entries = Object.entries(service(name).environment);
  return Object.fromEntries(entries.map(([key, value]) => [key, resolveVariables(value, given)]));
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
    const needs = {
      'ingest-api': ['kafka'],
      writer: ['kafka', 'clickhouse'],
      'query-api': ['clickhouse'],
      'trench-api': ['ingest-api', 'query-api'],
    }[name];
    expect(Array.isArray(depends_on) ? depends_on : Object.keys(depends_on ?? {})).toEqual(needs);
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
      expect(environment['CLICKHOUSE_DATABASE']).toBe(clickhouse['CLICKHOUSE_DB']);
    }
  });
});

/** Variables of the compose file that are called otherwise in a service: each service has an account of its own. */
const RENAMED: Readonly<Record<string, string>> = {
  CLICKHOUSE_WRITER_PASSWORD: 'CLICKHOUSE_PASSWORD of writer',
  CLICKHOUSE_QUERY_PASSWORD: 'CLICKHOUSE_PASSWORD of query-api',
};

test('a variable that is given arrives in the service under its name, and in no other variable', () => {
  const arrived = NAMES.flatMap((name) =>
    Object.entries(service(name).environment).flatMap(([key, value]) => {
      const [, variable] = /^\$\{([A-Z_]+):-/.exec(String(value)) ?? [];
      if (variable === undefined) return [];
      expect(environmentOf(name, { [variable]: 'given' })[key]).toBe('given');
      return [[`${key} of ${name}`, RENAMED[variable] ?? `${variable} of ${name}`]];
    }),
  );
  expect(arrived.length).toBeGreaterThanOrEqual(6);
  for (const [is, should] of arrived) expect(is).toBe(should);
});

describe('the accounts of ClickHouse', () => {
  const PASSWORDS = {
    CLICKHOUSE_MIGRATE_PASSWORD: 'm m',
    CLICKHOUSE_WRITER_PASSWORD: "w'$w",
    CLICKHOUSE_QUERY_PASSWORD: 'q',
    CLICKHOUSE_WEBHOOKS_PASSWORD: 'w"h',
  };

  test('are created with the passwords that the services have', async () => {
    const [script = '', target] = mountOf('/docker-entrypoint-initdb.d/');
    expect(target).toMatch(/\.sh$/);
    await using folder = await makeTempDir();
    const client = join(folder.path, 'clickhouse-client');
    await writeFile(client, '#!/bin/sh\nprintf "%s\\n" "$@"', { mode: 0o700 });
    const env = { PATH: `${folder.path}:${process.env['PATH']}`, ...environmentOf('clickhouse', PASSWORDS) };
    const { stdout } = await promisify(execFile)(fileURLToPath(new URL(script, ROOT)), { env });
    const args = stdout.trimEnd().split('\n');
    const passed = (option: string) => args[args.indexOf(option) + 1];
    const hash = (password = '') => createHash('sha256').update(password).digest('hex');
    const [writer, query] = ['writer', 'query-api'].map((name) => environmentOf(name, PASSWORDS));
    expect(passed('--queries-file')).toBe(mountOf('/etc/sluice/')[1]);
    expect(passed('--param_database')).toBe(writer?.['CLICKHOUSE_DATABASE']);
    expect(passed('--param_writer_password_sha256')).toBe(hash(writer?.['CLICKHOUSE_PASSWORD']));
    expect(passed('--param_migrate_password_sha256')).toBe(hash(writer?.['CLICKHOUSE_MIGRATE_PASSWORD']));
    expect(passed('--param_query_password_sha256')).toBe(hash(query?.['CLICKHOUSE_PASSWORD']));
    expect(passed('--param_webhooks_password_sha256')).toBe(hash(query?.['CLICKHOUSE_WEBHOOKS_PASSWORD']));
    const hashes = args.filter((arg) => /^[0-9a-f]{64}$/.test(arg));
    expect(hashes.toSorted()).toEqual(Object.values(PASSWORDS).map(hash).toSorted());
    expect(Object.values(PASSWORDS).filter((password) => args.includes(password))).toEqual([]);
    const sql = await readFile(new URL(mountOf('/etc/sluice/')[0] ?? '', ROOT), 'utf8');
    const parameters = [...sql.matchAll(/\{(\w+):/g)].map(([, name]) => `--param_${name}`);
    expect(parameters.filter((parameter) => !args.includes(parameter))).toEqual([]);
  });

  test('have the one password that an older installation has set', () => {
    const given = { CLICKHOUSE_PASSWORD: 'set long ago' };
    const passwords = ['clickhouse', 'writer', 'query-api'].flatMap((name) =>
      Object.entries(environmentOf(name, given)).flatMap(([key, value]) => (key.endsWith('_PASSWORD') ? [value] : [])),
    );
    expect(new Set(passwords)).toEqual(new Set(['set long ago']));
  });

  /** Returns source and target of what is mounted below a folder. */
  function mountOf(folder: string): string[] {
    const mounts = (service('clickhouse').volumes ?? []).map((volume) => volume.split(':'));
    return mounts.find(([, target]) => target?.startsWith(folder)) ?? [];
  }
});

test('the two APIs are published on loopback, where npm start has them, and others on request', () => {
  const published = Object.entries(compose.services).flatMap(([name, { ports, profiles = [] }]) =>
    (ports ?? []).map((port) => [name, port, ...profiles]),
  );
  expect(published).toEqual([
    ['ingest-api', '127.0.0.1:4000:8080'],
    ['query-api', '127.0.0.1:4001:8080'],
    ['trench-api', '127.0.0.1:4003:8080', 'trench'],
    ['prometheus', '127.0.0.1:9090:9090', 'observability'],
    ['grafana', '127.0.0.1:3000:3000', 'observability'],
  ]);
});

test('every image of others is pinned by its digest, and every file that is mounted exists', async () => {
  for (const [name, { build, image = '', volumes = [], pull_policy }] of Object.entries(compose.services)) {
    if (!build && pull_policy !== 'never') expect(image, name).toMatch(/^[\w/.-]+:v?\d[\d.]+@sha256:[0-9a-f]{64}$/);
    for (const volume of volumes.filter((mounted) => mounted.startsWith('.'))) {
      await access(new URL(volume.split(':')[0] ?? '', ROOT));
    }
  }
});

test('the engines have volumes, bounded memory and health checks', () => {
  for (const name of ['kafka', 'clickhouse']) {
    expect(service(name).healthcheck).toBeDefined();
    expect(service(name).deploy?.resources.limits.memory).toMatch(/^\d+g$/);
    const [volume] = service(name).volumes?.[0]?.split(':') ?? [];
    expect(Object.keys(compose.volumes)).toContain(volume);
  }
});

test('the health check of Kafka is a TCP connection to its listener, which fails where nothing listens', async () => {
  const [kind, program = '', ...args] = service('kafka').healthcheck?.test ?? [];
  expect(kind).toBe('CMD');
  expect(environmentOf('kafka')['KAFKA_LISTENERS']).toContain('PLAINTEXT://:9092');
  expect(args.at(-1)).toContain('/127.0.0.1/9092');
  const check = (port: string) => {
    const onPort = args.map((arg) => arg.replace('9092', port));
    return promisify(execFile)(program, onPort).then(
      () => 'healthy',
      () => 'unhealthy',
    );
  };
  const [, kafkaPort = ''] = inject('kafkaBrokers')[0]?.split(':') ?? [];
  const [freePort] = await findFreePorts(1);
  expect(await check(kafkaPort)).toBe('healthy');
  expect(await check(String(freePort))).toBe('unhealthy');
});

test('the log of every container is rotated', () => {
  for (const [name, { logging }] of Object.entries(compose.services)) {
    expect(logging?.options, name).toEqual({ 'max-size': expect.stringMatching(/^\d+m$/), 'max-file': '3' });
  }
});

test('keys has the image of ingest-api, so that up --build rebuilds it, and runs a program of it', async () => {
  expect(service('keys').image).toBe(service('ingest-api').image);
  expect(service('keys').build).toBeUndefined();
  expect(service('keys').pull_policy).toBe('never');
  const dockerfile = await readFile(new URL('Dockerfile', ROOT), 'utf8');
  const final = dockerfile.split(/^FROM /m).at(-1) ?? '';
  const [program = '', ...args] = service('keys').entrypoint ?? [];
  const file = new RegExp(`^RUN ln -s /sluice/(\\S+) /usr/local/bin/${program}$`, 'm').exec(final)?.[1] ?? '';
  await using folder = await makeTempDir();
  await symlink(fileURLToPath(new URL(file, ROOT)), join(folder.path, program));
  const env = { PATH: [folder.path, dirname(process.execPath), process.env['PATH']].join(':') };
  const run = (argument: string) => promisify(execFile)(program, [...args, argument], { env, cwd: '/' });
  expect((await run('--help')).stdout).toContain('Usage: sluice keys COMMAND');
  await expect(run('nonsense')).rejects.toMatchObject({
    code: 2,
    stderr: expect.stringContaining('sluice keys --help'),
  });
  const folders = [...final.matchAll(/^COPY (?!--)(\S+) /gm)].map(([, folder]) => `${folder}/`);
  expect(folders.some((folder) => file.startsWith(folder))).toBe(true);
});

test('services that check keys read the file that the keys command writes', () => {
  const path = environmentOf('keys')['API_KEYS_FILE'];
  expect(environmentOf('ingest-api')['API_KEYS_FILE']).toBe(path);
  expect(service('ingest-api').volumes).toEqual(['keys:/etc/sluice:ro']);
  // These services write it.
  for (const name of ['keys', 'query-api', 'trench-api']) {
    expect(environmentOf(name)['API_KEYS_FILE']).toBe(path);
    expect(service(name).volumes).toEqual(['keys:/etc/sluice']);
  }
});

test('trench-api calls the services where they listen, and has no admin key unless one is given', () => {
  const environment = environmentOf('trench-api');
  expect(environment['INGEST_URL']).toBe(`http://ingest-api:${environmentOf('ingest-api')['PORT']}`);
  expect(environment['QUERY_URL']).toBe(`http://query-api:${environmentOf('query-api')['PORT']}`);
  expect(loadConfig(trenchSchema, environment).TRENCH_ADMIN_KEY).toBeUndefined();
  expect(environmentOf('trench-api', { TRENCH_ADMIN_KEY: 'a' })['TRENCH_ADMIN_KEY']).toBe('a');
});

test('each variable that may be given reaches the containers that it is for, and no other', async () => {
  const text = await readFile(new URL('docker-compose.yml', ROOT), 'utf8');
  const names = new Set([...text.matchAll(/\$\{(\w+)/g)].map(([, name = '']) => name));
  const reached = [...names].map((name) => [
    name,
    Object.keys(compose.services)
      .filter((one) => service(one).environment)
      .flatMap((one) =>
        Object.entries(environmentOf(one, { [name]: 'given' })).flatMap(([variable, value]) =>
          value.includes('given') ? [`${one}.${variable}=${value}`] : [],
        ),
      )
      .sort(),
  ]);
  const given = (...variables: readonly string[]) => variables.map((variable) => `${variable}=given`);
  expect(Object.fromEntries(reached)).toEqual({
    KAFKA_CLUSTER_ID: given('kafka.CLUSTER_ID'),
    // For those of accounts that are not given.
    CLICKHOUSE_PASSWORD: given(
      ...['MIGRATE', 'QUERY', 'WEBHOOKS', 'WRITER'].map((account) => `clickhouse.${account}_PASSWORD`),
      ...['clickhouse', 'query-api', 'writer'].map((one) => `${one}.CLICKHOUSE_PASSWORD`),
      'query-api.CLICKHOUSE_WEBHOOKS_PASSWORD',
      'writer.CLICKHOUSE_MIGRATE_PASSWORD',
    ).sort(),
    CLICKHOUSE_MIGRATE_PASSWORD: given('clickhouse.MIGRATE_PASSWORD', 'writer.CLICKHOUSE_MIGRATE_PASSWORD'),
    CLICKHOUSE_WRITER_PASSWORD: given('clickhouse.WRITER_PASSWORD', 'writer.CLICKHOUSE_PASSWORD'),
    CLICKHOUSE_QUERY_PASSWORD: given('clickhouse.QUERY_PASSWORD', 'query-api.CLICKHOUSE_PASSWORD'),
    CLICKHOUSE_WEBHOOKS_PASSWORD: given('clickhouse.WEBHOOKS_PASSWORD', 'query-api.CLICKHOUSE_WEBHOOKS_PASSWORD'),
    EVENTS_RETENTION_DAYS: given('writer.EVENTS_RETENTION_DAYS'),
    EVENTS_COLD_AFTER_DAYS: given('writer.EVENTS_COLD_AFTER_DAYS'),
    TRENCH_ADMIN_KEY: given('trench-api.TRENCH_ADMIN_KEY'),
  });
});
