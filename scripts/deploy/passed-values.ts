import { type KubernetesObject, type PodSpec, podsOf } from './kubernetes-object.ts';
import { PASSED_RULES } from './passed-rules.ts';

/** What a container gets: its variables, and of those that name a file the secret or ConfigMap with the key. */
type Passed = Readonly<Record<string, string>>;

/** Values of the chart, each other than its default and than all others, and what each Deployment or Job gets of them. */
export interface PassedValues {
  readonly name: string;
  readonly values: object;
  readonly passed: Readonly<Record<string, Passed>>;
}

/** The variables that may be set in `env`, by the section of the values. */
export type EnvVariables = Readonly<Record<'ingestApi' | 'writer' | 'queryApi' | 'trenchApi', readonly string[]>>;

const MOUNT = '/etc/sluice/';

const secretOf = (name: string) => ({ name, key: `${name}-key` });
const accountOf = (name: string) => ({ user: `${name}-user`, passwordSecret: secretOf(name) });
const keyOf = (name: string) => `${name}/${name}-key`;

/** The annotations of the account of pods. */
const ANNOTATIONS: Passed = { 'example.com/role': 'role-of-pods' };

const KAFKA = {
  brokers: ['kafka-1.example.com:9001', 'kafka-2.example.com:9002'],
  topicPrefix: 'prefix.',
  partitions: 12,
  replicationFactor: 5,
  tls: { enabled: true, caSecret: secretOf('kafka-ca'), certificateSecret: 'kafka-certificate' },
  sasl: {
    ...{ mechanism: 'oauthbearer', username: 'kafka-user', passwordSecret: secretOf('kafka-password') },
    ...{ tokenUrl: 'https://tokens.example.com/token', scope: 'kafka-scope', extensions: 'pool=pool-1' },
    awsRegion: 'region-1',
  },
};

const OF_KAFKA: Passed = {
  KAFKA_BROKERS: 'kafka-1.example.com:9001,kafka-2.example.com:9002',
  KAFKA_TOPIC_PREFIX: 'prefix.',
  KAFKA_PARTITIONS: '12',
  KAFKA_REPLICATION_FACTOR: '5',
  KAFKA_SSL: 'true',
  KAFKA_SSL_CA_FILE: keyOf('kafka-ca'),
  KAFKA_SSL_CERT_FILE: 'kafka-certificate/tls.crt',
  KAFKA_SSL_KEY_FILE: 'kafka-certificate/tls.key',
  KAFKA_SASL_MECHANISM: 'oauthbearer',
  KAFKA_SASL_TOKEN_URL: 'https://tokens.example.com/token',
  KAFKA_SASL_SCOPE: 'kafka-scope',
  KAFKA_SASL_EXTENSIONS: 'pool=pool-1',
  AWS_REGION: 'region-1',
  KAFKA_SASL_USERNAME: 'kafka-user',
  KAFKA_SASL_PASSWORD_FILE: keyOf('kafka-password'),
};

const CLICKHOUSE = {
  url: 'https://clickhouse.example.com:8444',
  database: 'database',
  caSecret: secretOf('clickhouse-ca'),
};

const OF_CLICKHOUSE: Passed = {
  CLICKHOUSE_URL: CLICKHOUSE.url,
  CLICKHOUSE_DATABASE: 'database',
  CLICKHOUSE_CA_FILE: keyOf('clickhouse-ca'),
};

const OF_KEYS: Passed = { API_KEYS_FILE: keyOf('keys') };

const TRACING = { enabled: true, endpoint: 'http://collector.example.com:4319', samplingRatio: 0.25 };

const OF_TRACING: Passed = {
  NODE_OPTIONS: '--import=/sluice/packages/shared/src/tracing/register.mjs',
  OTEL_EXPORTER_OTLP_ENDPOINT: TRACING.endpoint,
  OTEL_TRACES_SAMPLER: 'parentbased_traceidratio',
  OTEL_TRACES_SAMPLER_ARG: '0.25',
};

const ACCOUNTS = {
  writer: accountOf('writer'),
  query: accountOf('query'),
  migrate: accountOf('migrate'),
  sql: accountOf('sql'),
  webhooks: accountOf('webhooks'),
};

const S3 = { accessKeyId: 's3-key', secretKey: secretOf('s3') };

const OF_S3: Passed = { BACKUP_S3_ACCESS_KEY_ID: 's3-key', BACKUP_S3_SECRET_ACCESS_KEY_FILE: keyOf('s3') };

const AUDIT = { schedule: '30 4 * * *' };

const DOCTOR = { schedule: '0 * * * *' };

const BACKUP = { schedule: '0 3 * * *', to: 's3://bucket/backups' };

/** A large number, a text and a switch take turns: Helm reads numbers as floats. */
function sampleOf(index: number): string | number | boolean {
  return [12_000_000 + index, `text ${index}`, index % 2 === 0][index % 3] ?? '';
}

/** A section of a service: the time to stop, variables, and others. */
function sectionOf(variables: readonly string[], shutdownTimeoutMs: number) {
  const env = variables.map((name, index): [string, string | number | boolean] => [
    name,
    sampleOf(shutdownTimeoutMs + index),
  ]);
  return {
    values: {
      shutdownTimeoutMs,
      env: Object.fromEntries(env),
      extraEnv: [{ name: 'OTEL_SERVICE_NAME', value: `service-${shutdownTimeoutMs}` }],
    },
    passed: {
      SHUTDOWN_TIMEOUT_MS: String(shutdownTimeoutMs),
      OTEL_SERVICE_NAME: `service-${shutdownTimeoutMs}`,
      ...Object.fromEntries(env.map(([name, value]) => [name, String(value)])),
    } as Passed,
  };
}

/** What the sets have in common: their values, and what each service gets of them. */
function partsOf(variables: EnvVariables) {
  const ingest = sectionOf(variables.ingestApi, 21_000_000);
  const writer = sectionOf(variables.writer, 22_000_000);
  const query = sectionOf(variables.queryApi, 23_000_000);
  const trench = sectionOf(variables.trenchApi, 24_000_000);
  const values = {
    fullnameOverride: 'passed',
    image: { repository: 'registry.example.com/sluice' },
    keys: { secret: 'keys', key: 'keys-key' },
    kafka: KAFKA,
    serviceAccount: { annotations: ANNOTATIONS },
    ...{ ingestApi: ingest.values, writer: writer.values, queryApi: query.values },
    trenchApi: { enabled: true, ...trench.values },
    metrics: { prometheusRule: PASSED_RULES },
  };
  return {
    values,
    ofIngest: { ...ingest.passed, ...OF_KEYS, ...OF_KAFKA } as Passed,
    ofWriter: { ...writer.passed, ...OF_KAFKA, ...OF_CLICKHOUSE } as Passed,
    ofQuery: {
      ...query.passed,
      ...OF_KEYS,
      ...OF_CLICKHOUSE,
      ...{ WRITER_URL: 'http://passed-writer:8080', REPLAY_URL: 'http://passed-writer:8080' },
    } as Passed,
    ofTrench: {
      ...trench.passed,
      ...{ INGEST_URL: 'http://passed-ingest-api:8080', QUERY_URL: 'http://passed-query-api:8080' },
    } as Passed,
  };
}

type Parts = ReturnType<typeof partsOf>;

const stopped = <Values>(values: Values) => ({ ...values, stopped: true });

/**
 * Returns values for a deployment with accounts of passwords, for one with certificates, for one of several servers, and for
 * each of the two kinds of replicas.
 */
export function passedValues(variables: EnvVariables): readonly PassedValues[] {
  const parts = partsOf(variables);
  const withPasswords = {
    ...parts,
    ofWriter: {
      ...parts.ofWriter,
      ...{ CLICKHOUSE_USER: 'writer-user', CLICKHOUSE_PASSWORD_FILE: keyOf('writer') },
      ...{ CLICKHOUSE_MIGRATE_USER: 'migrate-user', CLICKHOUSE_MIGRATE_PASSWORD_FILE: keyOf('migrate') },
    },
    ofQuery: {
      ...parts.ofQuery,
      ...{ CLICKHOUSE_USER: 'query-user', CLICKHOUSE_PASSWORD_FILE: keyOf('query') },
      ...{ CLICKHOUSE_SQL_USER: 'sql-user', CLICKHOUSE_SQL_PASSWORD_FILE: keyOf('sql') },
      ...{ CLICKHOUSE_WEBHOOKS_USER: 'webhooks-user', CLICKHOUSE_WEBHOOKS_PASSWORD_FILE: keyOf('webhooks') },
    },
  };
  return [
    ofPasswords(withPasswords),
    ofCertificates(parts),
    ofServers(withPasswords),
    ofReplicas(withPasswords),
    ofSharedRows(withPasswords),
  ];
}

function ofPasswords({ values, ofIngest, ofWriter, ofQuery, ofTrench }: Parts): PassedValues {
  const ofJob = { ...ofWriter, ...OF_TRACING };
  return {
    name: 'passwords and tracing',
    values: {
      ...values,
      clickhouse: { ...CLICKHOUSE, ...ACCOUNTS },
      tracing: TRACING,
      writer: stopped(values.writer),
      jobs: {
        s3: S3,
        backup: BACKUP,
        audit: AUDIT,
        doctor: DOCTOR,
        restore: { from: 's3://bucket/backups/one', ...accountOf('restore') },
        migrations: { beforeUpgrade: true },
      },
    },
    passed: {
      'Deployment passed-ingest-api': { ...ofIngest, ...OF_TRACING },
      'Deployment passed-writer': { ...ofWriter, ...OF_TRACING },
      'Deployment passed-query-api': { ...ofQuery, ...OF_TRACING },
      'Deployment passed-trench-api': { ...ofTrench, ...OF_TRACING },
      'CronJob passed-backup': { ...ofJob, ...OF_S3 },
      'CronJob passed-audit': ofJob,
      // The writers are stopped.
      'CronJob passed-doctor': {
        ...ofJob,
        ...{ INGEST_URL: 'http://passed-ingest-api:8080', QUERY_URL: 'http://passed-query-api:8080' },
      },
      'Job passed-restore': {
        ...{ ...ofJob, ...OF_S3 },
        ...{ CLICKHOUSE_MIGRATE_USER: 'restore-user', CLICKHOUSE_MIGRATE_PASSWORD_FILE: keyOf('restore') },
      },
      'Job passed-migrations': ofJob,
    },
  };
}

function ofCertificates({ values, ofIngest, ofWriter, ofQuery, ofTrench }: Parts): PassedValues {
  return {
    name: 'certificates',
    values: {
      ...values,
      jobs: { backup: BACKUP },
      clickhouse: {
        ...CLICKHOUSE,
        writer: { user: 'writer-user', certificateSecret: 'writer-certificate' },
        query: { user: 'query-user', certificateSecret: 'query-certificate' },
        migrate: { user: '' },
      },
    },
    passed: {
      'Deployment passed-ingest-api': ofIngest,
      'Deployment passed-trench-api': ofTrench,
      'Deployment passed-writer': { ...ofWriter, ...ofCertificate('writer') },
      'Deployment passed-query-api': { ...ofQuery, ...ofCertificate('query') },
      'CronJob passed-backup': { ...ofWriter, ...ofCertificate('writer') },
    },
  };
}

const SERVERS = ['s1', 's2'].map((name) => ({ name, url: `https://${name}.example.com:8443` }));

/** Returns the variables with the file of several servers in place of the address of one. */
function withoutUrl({ CLICKHOUSE_URL: _, REPLAY_URL: __, ...others }: Passed): Passed {
  return { ...others, CLICKHOUSE_SERVERS_FILE: 'passed-servers/servers.json' };
}

function ofServers({ values, ofIngest, ofWriter, ofQuery, ofTrench }: Parts): PassedValues {
  const ofJob = withoutUrl(ofWriter);
  return {
    name: 'several servers',
    values: {
      ...values,
      clickhouse: { ...CLICKHOUSE, url: '', servers: SERVERS, ...ACCOUNTS },
      ...{ ingestApi: stopped(values.ingestApi), writer: stopped(values.writer) },
      jobs: { s3: S3, backup: BACKUP, audit: AUDIT, growPartitions: { to: 24 }, migrations: { beforeUpgrade: true } },
    },
    passed: {
      'Deployment passed-ingest-api': ofIngest,
      'Deployment passed-writer-s1': { ...ofJob, CLICKHOUSE_SERVER: 's1' },
      'Deployment passed-writer-s2': { ...ofJob, CLICKHOUSE_SERVER: 's2' },
      'Deployment passed-query-api': {
        ...withoutUrl(ofQuery),
        WRITER_URL: 'http://passed-writer-s1:8080,http://passed-writer-s2:8080',
      },
      'Deployment passed-trench-api': ofTrench,
      'CronJob passed-compare': ofJob,
      'CronJob passed-backup': { ...ofJob, ...OF_S3 },
      'CronJob passed-audit': ofJob,
      'Job passed-grow-partitions': ofJob,
      'Job passed-migrations': { ...ofJob, CLICKHOUSE_SERVERS_FILE: 'passed-migrations-servers/servers.json' },
    },
  };
}

function ofReplicas({ values, ofIngest, ofWriter, ofQuery, ofTrench }: Parts): PassedValues {
  const replication = { CLICKHOUSE_REPLICATION: 'replicated' };
  const ofJob = { ...withoutUrl(ofWriter), ...replication };
  return {
    name: 'replicas',
    values: {
      ...values,
      clickhouse: { ...CLICKHOUSE, url: '', replicated: true, servers: SERVERS, ...ACCOUNTS },
      jobs: { backup: BACKUP, audit: AUDIT },
    },
    passed: {
      'Deployment passed-ingest-api': ofIngest,
      'Deployment passed-writer-s1': { ...ofJob, CLICKHOUSE_SERVER: 's1' },
      'Deployment passed-writer-s2': { ...ofJob, CLICKHOUSE_SERVER: 's2' },
      'Deployment passed-query-api': {
        ...{ ...withoutUrl(ofQuery), ...replication },
        WRITER_URL: 'http://passed-writer-s1:8080,http://passed-writer-s2:8080',
      },
      'Deployment passed-trench-api': ofTrench,
      'CronJob passed-backup': ofJob,
      'CronJob passed-audit': ofJob,
    },
  };
}

function ofSharedRows({ values, ofIngest, ofWriter, ofQuery, ofTrench }: Parts): PassedValues {
  const replication = { CLICKHOUSE_REPLICATION: 'shared' };
  const { sql: _, ...accounts } = ACCOUNTS;
  const { CLICKHOUSE_SQL_USER: __, CLICKHOUSE_SQL_PASSWORD_FILE: ___, ...ofQueryWithoutSql } = ofQuery;
  const ofJob = { ...ofWriter, ...replication };
  return {
    name: 'replicas that share rows',
    values: {
      ...values,
      clickhouse: { ...CLICKHOUSE, shared: true, ...accounts },
      jobs: { audit: AUDIT, migrations: { beforeUpgrade: true } },
    },
    passed: {
      'Deployment passed-ingest-api': ofIngest,
      'Deployment passed-writer': ofJob,
      'Deployment passed-query-api': { ...ofQueryWithoutSql, ...replication },
      'Deployment passed-trench-api': ofTrench,
      'CronJob passed-audit': ofJob,
      'Job passed-migrations': ofJob,
    },
  };
}

function ofCertificate(account: 'writer' | 'query'): Passed {
  return {
    CLICKHOUSE_USER: `${account}-user`,
    CLICKHOUSE_CERT_FILE: `${account}-certificate/tls.crt`,
    CLICKHOUSE_KEY_FILE: `${account}-certificate/tls.key`,
  };
}

/** Returns what containers, and the account of pods, do not get of the values, or get otherwise. */
export function passedErrors(objects: readonly KubernetesObject[], passed: PassedValues['passed']): readonly string[] {
  // Each Job that runs once has a name of its own.
  const pods = new Map<string, PodSpec>(
    podsOf(objects).map(({ title, spec }) => [title.replace(/^(Job .*)-[0-9a-f]{8}$/, '$1'), spec]),
  );
  const account = objects.find(({ kind }) => kind === 'ServiceAccount');
  const others = [...pods.keys()].filter((title) => !(title in passed));
  return [
    ...others.map((title) => `${title}: nobody says what it gets`),
    ...differences(ANNOTATIONS, account?.metadata.annotations ?? {}).map((error) => `ServiceAccount: ${error}`),
    ...Object.entries(passed).flatMap(([title, wanted]) => {
      const pod = pods.get(title);
      return pod ? differences(wanted, gottenBy(pod)).map((error) => `${title}: ${error}`) : [`${title} is missing`];
    }),
  ];
}

function differences(wanted: Passed, gotten: Passed): string[] {
  return [...new Set([...Object.keys(wanted), ...Object.keys(gotten)])]
    .filter((name) => wanted[name] !== gotten[name])
    .map((name) => `${name} is ${gotten[name] ?? 'not set'}, and must be ${wanted[name] ?? 'absent'}`);
}

function gottenBy({ containers, volumes }: PodSpec): Passed {
  const files = new Map<string, string>(
    volumes.flatMap(({ projected }) =>
      projected.sources.flatMap(({ secret, configMap }) =>
        [secret, configMap].flatMap((source) =>
          (source?.items ?? []).map(({ key, path }) => [`${MOUNT}${path}`, `${source?.['name']}/${key}`] as const),
        ),
      ),
    ),
  );
  return Object.fromEntries(
    containers.flatMap(({ env }) =>
      env.map(({ name, value }) => [name, name.endsWith('_FILE') ? (files.get(value) ?? value) : value]),
    ),
  );
}
