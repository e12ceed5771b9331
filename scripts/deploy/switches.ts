/** A switch of the chart: values, besides {@link BASE}, that turn something on or another way. */
export interface Switch {
  readonly name: string;
  readonly values: object;
}

const secret = (name: string) => ({ name });
const server = (name: string, more: object = {}) => ({ name, url: `https://${name}.example.com:8443`, ...more });

/** What the chart needs, with addresses that each switch accepts. */
export const BASE = {
  image: { repository: 'registry.example.com/sluice' },
  keys: { secret: 'keys' },
  kafka: { brokers: ['kafka.example.com:9093'] },
  clickhouse: { url: 'https://clickhouse.example.com:8443' },
} as const;

const KEDA = { enabled: true, prometheusAddress: 'http://prometheus:9090' };
const PASSWORDS = {
  ...{ writer: { passwordSecret: secret('w') }, query: { passwordSecret: secret('q') } },
  migrate: { passwordSecret: secret('m') },
};

export const SWITCHES: readonly Switch[] = [
  { name: 'TLS of Kafka', values: { kafka: { tls: { enabled: true, caSecret: secret('ca') } } } },
  { name: 'a certificate for Kafka', values: { kafka: { tls: { enabled: true, certificateSecret: 'client' } } } },
  {
    name: 'SASL',
    values: { kafka: { sasl: { mechanism: 'plain', username: 'u', passwordSecret: secret('sasl') } } },
  },
  {
    name: 'tokens',
    values: {
      kafka: {
        sasl: {
          ...{ mechanism: 'oauthbearer', username: 'u', passwordSecret: secret('sasl') },
          tokenUrl: 'https://tokens.example.com:8444/token',
        },
      },
    },
  },
  {
    name: 'a role of AWS',
    values: {
      kafka: { tls: { enabled: true }, sasl: { mechanism: 'aws-msk-iam', awsRegion: 'eu-central-1' } },
      serviceAccount: { annotations: { 'eks.amazonaws.com/role-arn': 'arn:aws:iam::123456789012:role/sluice' } },
    },
  },
  { name: "the brokers' number of replicas", values: { kafka: { replicationFactor: null } } },
  { name: 'several servers', values: { clickhouse: { url: '', servers: [server('a1'), server('a2')] } } },
  {
    name: 'servers with ranges',
    values: {
      clickhouse: {
        url: '',
        servers: [server('b1', { partitions: '0-23' }), server('b2', { partitions: '24-47' })],
      },
    },
  },
  {
    name: 'replicas',
    values: { clickhouse: { url: '', replicated: true, servers: [server('r1'), server('r2')] } },
  },
  { name: 'replicas that share rows', values: { clickhouse: { shared: true } } },
  { name: 'no comparison', values: { clickhouse: { compare: { schedule: '' } } } },
  { name: 'a CA of ClickHouse', values: { clickhouse: { caSecret: secret('ca') } } },
  { name: 'passwords of ClickHouse', values: { clickhouse: PASSWORDS } },
  { name: "the writer's certificate", values: { clickhouse: { writer: { certificateSecret: 'w' } } } },
  { name: "query-api's certificate", values: { clickhouse: { query: { certificateSecret: 'q' } } } },
  { name: 'no account for migrations', values: { clickhouse: { migrate: { user: '' } } } },
  { name: 'SQL', values: { clickhouse: { sql: { user: 'sql', passwordSecret: secret('sql') } } } },
  { name: 'webhooks', values: { clickhouse: { webhooks: { user: 'hooks', passwordSecret: secret('hooks') } } } },
  {
    name: 'a server of webhooks',
    values: {
      clickhouse: { webhooks: { user: 'hooks' } },
      queryApi: { env: { CLICKHOUSE_WEBHOOKS_URL: 'https://state.example.com:9443' } },
    },
  },
  { name: 'addresses of ingest-apis', values: { queryApi: { env: { INGEST_URLS: 'http://ingest:9090' } } } },
  { name: 'reads without a key', values: { queryApi: { env: { QUERY_ANONYMOUS_WORKSPACE: 'a' } } } },
  { name: 'scaled ingest-api', values: { ingestApi: { autoscaling: { enabled: true } } } },
  { name: 'scaled query-api', values: { queryApi: { autoscaling: { enabled: true } } } },
  { name: 'scaled writers', values: { writer: { keda: KEDA } } },
  { name: 'trench-api', values: { trenchApi: { enabled: true } } },
  { name: 'scaled trench-api', values: { trenchApi: { enabled: true, autoscaling: { enabled: true } } } },
  { name: 'an Ingress', values: { ingestApi: { ingress: { enabled: true, host: 'e.example.com', tlsSecret: 't' } } } },
  { name: 'an Ingress of queries', values: { queryApi: { ingress: { enabled: true, host: 'q.example.com' } } } },
  { name: 'a route', values: { queryApi: { httpRoute: { enabled: true, parentRefs: [{ name: 'public' }] } } } },
  { name: 'stopped ingest-api', values: { ingestApi: { stopped: true } } },
  { name: 'stopped writers', values: { writer: { stopped: true } } },
  { name: 'stopped query-api', values: { queryApi: { stopped: true } } },
  { name: 'another tag of writers', values: { writer: { tag: '0.0.9' } } },
  { name: 'a registry with a login', values: { image: { pullSecrets: [{ name: 'registry' }] } } },
  { name: 'a monitor', values: { metrics: { serviceMonitor: { enabled: true } } } },
  { name: 'rules', values: { metrics: { prometheusRule: { enabled: true, leaveOut: ['SluiceBackupOld'] } } } },
  { name: 'dashboards', values: { metrics: { dashboards: { enabled: true } } } },
  { name: 'tracing', values: { tracing: { enabled: true, endpoint: 'http://collector:4318' } } },
  { name: 'policies', values: { networkPolicy: { enabled: true, clients: [{ podSelector: {} }] } } },
  { name: 'users that OpenShift assigns', values: { podSecurityContext: { runAsUser: null, fsGroup: null } } },
  { name: 'a login at S3', values: { jobs: { s3: { accessKeyId: 'a', secretKey: secret('s3') } } } },
  { name: 'backups', values: { jobs: { backup: { schedule: '0 3 * * *', to: 's3://a/b' } } } },
  { name: 'audits', values: { jobs: { audit: { schedule: '30 4 * * *', args: ['--share', '1/8'] } } } },
  { name: 'a doctor who comes again', values: { jobs: { doctor: { schedule: '0 * * * *' } } } },
  {
    name: 'a restore',
    values: {
      writer: { stopped: true },
      jobs: { restore: { from: 's3://a/b/c', user: 'r', passwordSecret: secret('restore') } },
    },
  },
  {
    name: 'more partitions',
    values: {
      ...{ ingestApi: { stopped: true }, writer: { stopped: true } },
      jobs: { growPartitions: { to: 96 } },
    },
  },
  { name: 'migrations before an upgrade', values: { jobs: { migrations: { beforeUpgrade: true } } } },
];

/** A pair of switches that the chart refuses, and what stands in the refusal. */
export interface Contradiction {
  readonly switches: readonly [string, string];
  readonly found: string;
}

export const CONTRADICTIONS: readonly Contradiction[] = [
  {
    switches: ['passwords of ClickHouse', "the writer's certificate"],
    found: 'clickhouse.writer: give passwordSecret',
  },
  { switches: ['passwords of ClickHouse', "query-api's certificate"], found: 'clickhouse.query: give passwordSecret' },
  { switches: ['passwords of ClickHouse', 'no account for migrations'], found: 'passwordSecret needs a user' },
  { switches: ['SASL', 'a role of AWS'], found: 'and has no username' },
  { switches: ['tokens', 'a role of AWS'], found: 'and has no username' },
  { switches: ['servers with ranges', "query-api's certificate"], found: 'cannot read clickhouse.servers with ranges' },
  { switches: ['servers with ranges', 'SQL'], found: 'there is no SQL where' },
  { switches: ['servers with ranges', 'more partitions'], found: 'it cannot be done where' },
  { switches: ['several servers', 'webhooks'], found: 'say which one keeps them' },
  { switches: ['servers with ranges', 'webhooks'], found: 'say which one keeps them' },
  { switches: ['replicas', 'webhooks'], found: 'say which one keeps them' },
  { switches: ['replicas', 'replicas that share rows'], found: 'clickhouse.shared: clickhouse.url leads' },
  { switches: ['several servers', 'replicas that share rows'], found: 'clickhouse.shared: clickhouse.url leads' },
  { switches: ['servers with ranges', 'replicas that share rows'], found: 'clickhouse.shared: clickhouse.url leads' },
  { switches: ['replicas that share rows', 'SQL'], found: 'there is no SQL where' },
  { switches: ['replicas that share rows', 'backups'], found: 'jobs.backup.schedule: it cannot be used' },
  { switches: ['replicas that share rows', 'a restore'], found: 'jobs.restore.from: it cannot be used' },
  { switches: ['replicas that share rows', 'more partitions'], found: 'jobs.growPartitions.to: it cannot be used' },
  { switches: ["the writer's certificate", 'a restore'], found: 'jobs.restore: the certificate of the writer' },
  { switches: ['a restore', 'more partitions'], found: 'one after the other' },
];

/** A switch that takes away, and means to, what another one would do. */
export interface Replacement {
  readonly name: string;
  /** What it takes away, as {@link effectsOf} says it. */
  readonly effects: RegExp;
}

export const REPLACEMENTS: readonly Replacement[] = [
  // What is stopped is not scaled, and no doctor asks it; KEDA's object stays, and is held.
  { name: 'stopped ingest-api', effects: /^HorizontalPodAutoscaler ingest-api$|^doctor has INGEST_URL$/ },
  { name: 'stopped writers', effects: /^doctor has WRITER_URL$/ },
  { name: 'a restore', effects: /^doctor has WRITER_URL$/ },
  { name: 'more partitions', effects: /^HorizontalPodAutoscaler ingest-api$|^doctor has (INGEST|WRITER)_URL$/ },
  { name: 'stopped query-api', effects: /^HorizontalPodAutoscaler query-api$|^doctor has QUERY_URL$/ },
  { name: 'no comparison', effects: /^(CronJob|NetworkPolicy) compare$|^compare / },
  // Of two switches of servers, or of accounts for the tables, the last one counts.
  { name: 'replicas', effects: /^(CronJob|NetworkPolicy) compare$|^compare / },
  { name: 'servers with ranges', effects: /^(CronJob|NetworkPolicy) compare$|^compare / },
];
