import { readdir, readFile, realpath } from 'node:fs/promises';
import { join } from 'node:path';
import { backupConfig } from '@sluice/cli/backup/config';
import { configSchema as ingestSchema } from '@sluice/ingest-api/config';
import { ingestDocument } from '@sluice/ingest-api/openapi';
import { configSchema as querySchema } from '@sluice/query-api/config';
import { readDocument } from '@sluice/query-api/testing/document';
import { loadConfig } from '@sluice/shared/config';
import { submissionSchemas } from '@sluice/submissions/reading/submission';
import { configSchema as trenchSchema } from '@sluice/trench-api/config';
import { trenchDocument } from '@sluice/trench-api/openapi';
import { configSchema as writerSchema } from '@sluice/writer/config';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';

const ROOT = join(import.meta.dirname, '..', '..');
const CHART = join(ROOT, 'deploy', 'helm', 'sluice');

/** A JSON Schema of an object. */
interface ObjectSchema {
  readonly $ref?: string;
  readonly properties?: Readonly<Record<string, ObjectSchema>>;
}

const SERVICES = {
  'ingest-api': { schema: ingestSchema, section: 'ingestApi' },
  'query-api': { schema: querySchema, section: 'queryApi' },
  'trench-api': { schema: trenchSchema, section: 'trenchApi' },
  writer: { schema: writerSchema, section: 'writer' },
} as const;
const NAMES = Object.keys(SERVICES) as (keyof typeof SERVICES)[];

/**
 * Variables that have no place in a pod: the chart has secrets as files, the keys file is one of them and cannot be changed, and
 * standard input is no concern of its.
 */
const LEFT_OUT = [
  ...['EXIT_ON_STDIN_END', 'PORT', 'TLS_CERT_FILE', 'TLS_KEY_FILE'],
  ...['KAFKA_SASL_PASSWORD', 'CLICKHOUSE_PASSWORD', 'CLICKHOUSE_MIGRATE_PASSWORD', 'CLICKHOUSE_SQL_PASSWORD'],
  ...['CLICKHOUSE_WEBHOOKS_PASSWORD', 'API_KEYS_CHANGEABLE', 'TRENCH_ADMIN_KEY', 'TRENCH_ADMIN_KEY_FILE'],
];

const schema = JSON.parse(await readFile(join(CHART, 'values.schema.json'), 'utf8'));
const values = parse(await readFile(join(CHART, 'values.yaml'), 'utf8'));
const template = await readFile(join(CHART, 'templates', '_environment.tpl'), 'utf8');

/** The variables that the chart sets from values of their own, without those that Node.js and OpenTelemetry read. */
const set = [...new Set([...template.matchAll(/"((?!NODE_|OTEL_)[A-Z][A-Z0-9_]+)"/g)].map(([, name = '']) => name))];

describe('values.schema.json', () => {
  const ajv = new Ajv2020({ allErrors: true, allowUnionTypes: true });
  const validate = ajv.compile(schema);

  test('accepts values.yaml and every file of deploy/helm/values', async () => {
    const folder = join(ROOT, 'deploy', 'helm', 'values');
    for (const file of await readdir(folder)) {
      validate(parse(await readFile(join(folder, file), 'utf8')));
      expect(validate.errors, file).toBeNull();
    }
    validate(values);
    expect(validate.errors).toBeNull();
  });

  test('refuses names that do not exist, and wrong types', () => {
    for (const wrong of [
      { writer: { replica: 2 } },
      { writer: { replicas: '2' } },
      { kafka: { brokers: ['kafka'] } },
      { ingestApi: { env: { QUERY_TIMEOUT_MS: 1 } } },
      { ingestApi: { env: { LOG_LEVEL: null } } },
    ]) {
      expect(validate(wrong), JSON.stringify(wrong)).toBe(false);
    }
  });

  test('and values.yaml name the same values, so that all are documented', () => {
    function namesOf(part: ObjectSchema, path = ''): string[] {
      const { properties } = part.$ref === undefined ? part : schema.$defs[part.$ref.replace('#/$defs/', '')];
      const isLeaf = properties === undefined || path.endsWith('.env') || path.endsWith('.authenticationRef');
      if (isLeaf || path === '.image.pullSecrets') return [path];
      return Object.entries<ObjectSchema>(properties).flatMap(([name, inner]) => namesOf(inner, `${path}.${name}`));
    }
    // Helm passes "global" to every chart.
    for (const name of namesOf(schema).filter((path) => path !== '.global')) {
      const value = name
        .slice(1)
        .split('.')
        .reduce((inner, part) => inner?.[part], values);
      expect(value, name).not.toBeUndefined();
    }
    // The other way round, the schema refuses what it does not know.
    expect(schema.additionalProperties).toBe(false);
  });
});

describe('variables of the environment', () => {
  test('each variable that the chart sets is one that a service reads', () => {
    const known = [...NAMES.map((name) => SERVICES[name].schema), backupConfig].flatMap(({ shape }) =>
      Object.keys(shape),
    );
    expect(set.filter((name) => !known.includes(name))).toEqual([]);
  });

  test.each(NAMES)('each variable of %s is set by the chart, or may be set in env, and not both', (name) => {
    const { schema: service, section } = SERVICES[name];
    const mayBeSet = Object.keys(schema.properties[section].properties.env.properties);
    const variables = Object.keys(service.shape);
    expect(mayBeSet.filter((variable) => !variables.includes(variable))).toEqual([]);
    expect(mayBeSet.filter((variable) => set.includes(variable))).toEqual([]);
    const others = variables.filter((variable) => !set.includes(variable) && !LEFT_OUT.includes(variable));
    expect(mayBeSet.toSorted()).toEqual(others.toSorted());
  });
});

test('the chart has the alert rules and dashboards of the repository', async () => {
  expect(await realpath(join(CHART, 'files', 'sluice.rules.yml'))).toBe(
    join(ROOT, 'deploy/prometheus/sluice.rules.yml'),
  );
  expect(await realpath(join(CHART, 'files', 'dashboards'))).toBe(join(ROOT, 'deploy/grafana'));
  const dashboards = (await readdir(join(CHART, 'files', 'dashboards'))).filter((name) => name.endsWith('.json'));
  expect(dashboards.length).toBeGreaterThan(0);
  // The names become names of objects.
  for (const name of dashboards) expect(name).toMatch(/^[a-z0-9-]{1,40}\.json$/);
});

test('the chart has the version of the services', async () => {
  const { version } = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8'));
  const chart = parse(await readFile(join(CHART, 'Chart.yaml'), 'utf8'));
  expect([chart.version, chart.appVersion]).toEqual([version, version]);
});

test('Ingress and HTTPRoute pass on every path of the APIs, and none of those for operators', async () => {
  const names = await readFile(join(CHART, 'templates', '_names.tpl'), 'utf8');
  const [ingestPaths = [], trenchPaths = [], queryPaths = []] = [...names.matchAll(/^\["\/.*\]$/gm)].map(
    ([list]) => JSON.parse(list) as string[],
  );
  const ingestConfig = loadConfig(ingestSchema, { KAFKA_BROKERS: 'kafka:9092', API_KEYS_FILE: 'keys.json' });
  const documents = [
    [ingestPaths, ingestDocument(ingestConfig, submissionSchemas({ eventsMax: 1, propertiesMax: 1, now: Date.now }))],
    [trenchPaths, trenchDocument(loadConfig(trenchSchema, { INGEST_URL: 'http://i', QUERY_URL: 'http://q' }))],
    [queryPaths, await readDocument()],
  ] as const;
  for (const [prefixes, document] of documents) {
    const paths = Object.keys(document.paths ?? {});
    const hidden = paths.filter((path) => !prefixes.some((prefix) => path === prefix || path.startsWith(`${prefix}/`)));
    expect(hidden.toSorted()).toEqual(['/', '/livez', '/metrics', '/readyz']);
  }
});
