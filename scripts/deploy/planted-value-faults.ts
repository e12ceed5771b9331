/** A fault in the values, and what has to refuse it. */
export interface PlantedValueFault {
  readonly name: string;
  readonly found: string;
  /** For helm, besides minimal.yaml. */
  readonly args: readonly string[];
}

/** Sets what makes the servers of ClickHouse replicas. */
const REPLICAS = `clickhouse.url=,clickhouse.replicated=true,${server(0, 'r1')},${server(1, 'r2')}`;

export const PLANTED_VALUE_FAULTS: readonly PlantedValueFault[] = [
  setting('a value that does not exist', 'writer.replica=2', "'replica' not allowed"),
  setting('a variable that the writer does not know', 'writer.env.BODY_BYTES_MAX=1', "'BODY_BYTES_MAX' not allowed"),
  setting('a variable that the chart sets', 'writer.env.KAFKA_PARTITIONS=12', "'KAFKA_PARTITIONS' not allowed"),
  setting('a text in place of a number', 'writer.replicas=two', '/writer/replicas'),
  setting('a broker without a port', 'kafka.brokers={kafka}', '/kafka/brokers/0'),
  setting('no broker', 'kafka.brokers=null', 'kafka.brokers'),
  setting('no images', 'image.repository=', 'image.repository'),
  setting('no keys file', 'keys.secret=', 'keys.secret'),
  setting('no ClickHouse', 'clickhouse.url=', 'clickhouse.url'),
  setting('an address beside several servers', server(0, 'a1'), 'remove one of them'),
  setting('two servers of one name', `clickhouse.url=,${server(0, 'a1')},${server(1, 'a1')}`, 'a1 is there twice'),
  setting('a name of a server with capital letters', `clickhouse.url=,${server(0, 'A')}`, '/clickhouse/servers/0/name'),
  setting(
    'a name of a server that makes those of objects too long',
    `clickhouse.url=,fullnameOverride=${'e'.repeat(40)},${server(0, 'a'.repeat(32))}`,
    'is too long for a name',
  ),
  setting(
    'a certificate, and a server without https',
    `clickhouse.url=,clickhouse.caSecret.name=ca,${server(0, 'a1')}`,
    'certificates need https',
  ),
  setting('more writers than partitions', 'writer.replicas=49', 'writer.replicas: at most kafka.partitions (48)'),
  setting(
    'an autoscaler of more writers than partitions',
    'writer.keda.enabled=true,writer.keda.maxReplicas=49,writer.keda.prometheusAddress=http://p',
    'writer.keda.maxReplicas: at most',
  ),
  setting('an autoscaler without Prometheus', 'writer.keda.enabled=true', 'writer.keda.prometheusAddress'),
  setting(
    'an autoscaler with more at least than at most',
    'queryApi.autoscaling.enabled=true,queryApi.autoscaling.minReplicas=9',
    'queryApi.autoscaling.minReplicas',
  ),
  setting('a certificate without TLS', 'kafka.tls.certificateSecret=client', 'kafka.tls: certificates need'),
  setting('SASL without a password', 'kafka.sasl.mechanism=plain', 'kafka.sasl: a mechanism needs'),
  setting(
    'tokens without their server',
    'kafka.sasl.mechanism=oauthbearer,kafka.sasl.username=u,kafka.sasl.passwordSecret.name=a',
    'oauthbearer needs tokenUrl',
  ),
  setting('a login of AWS without a region', 'kafka.sasl.mechanism=aws-msk-iam', 'aws-msk-iam needs awsRegion'),
  setting('a scope without tokens', 'kafka.sasl.scope=s', 'need the mechanism oauthbearer'),
  setting('a password without SASL', 'kafka.sasl.passwordSecret.name=account', 'need a mechanism'),
  setting('a certificate of ClickHouse without https', 'clickhouse.caSecret.name=ca', 'certificates need https'),
  setting(
    'a password beside a certificate',
    'clickhouse.url=https://c,clickhouse.query.passwordSecret.name=a,clickhouse.query.certificateSecret=b',
    'not both',
  ),
  setting(
    'a password for migrations beside the certificate of the writer',
    'clickhouse.url=https://c,clickhouse.writer.certificateSecret=a,clickhouse.migrate.passwordSecret.name=b',
    'clickhouse.migrate: the certificate of the writer',
  ),
  setting('tracing without a collector', 'tracing.enabled=true', 'tracing.endpoint: give the address'),
  setting(
    'a variable that tracing sets',
    'tracing.enabled=true,tracing.endpoint=http://c,writer.extraEnv[0].name=NODE_OPTIONS,writer.extraEnv[0].value=x',
    'writer.extraEnv: tracing sets NODE_OPTIONS',
  ),
  setting('an alert that does not exist', 'metrics.prometheusRule.leaveOut={SluiceNothing}', 'no alert SluiceNothing'),
  setting(
    'an address of runbooks without its last character',
    'metrics.prometheusRule.runbookBaseUrl=https://git.example.com',
    '/metrics/prometheusRule/runbookBaseUrl',
  ),
  setting('keys that are changed in a secret', 'queryApi.env.API_KEYS_CHANGEABLE=true', "'API_KEYS_CHANGEABLE' not"),
  setting('backups without a place', 'jobs.backup.schedule=0 3 * * *', 'jobs.backup.to: say where'),
  setting('a size of no unit', 'jobs.audit.workSize=8', '/jobs/audit/workSize'),
  setting('a key of S3 without its secret', 'jobs.s3.accessKeyId=a', 'jobs.s3: give accessKeyId and'),
  setting('a restore beside writers', 'jobs.restore.from=s3://a/b', 'jobs.restore: writers must not run'),
  setting('a confirmation of nothing', 'jobs.restore.confirmed=true', 'jobs.restore.confirmed: remove it'),
  setting(
    'more partitions beside ingest-api',
    'writer.stopped=true,jobs.growPartitions.to=96',
    'neither ingest-api nor',
  ),
  setting(
    'no more partitions than there are',
    'ingestApi.stopped=true,writer.stopped=true,jobs.growPartitions.to=48',
    'more than kafka.partitions (48)',
  ),
  setting(
    'more partitions of several shards',
    `${REPLICAS},clickhouse.servers[0].partitions=0-23,clickhouse.servers[1].partitions=24-47,` +
      'ingestApi.stopped=true,writer.stopped=true,jobs.growPartitions.to=96',
    'jobs.growPartitions: it cannot be done where clickhouse.servers have ranges',
  ),
  setting('several servers that share their rows', `clickhouse.shared=true,${REPLICAS}`, 'clickhouse.shared:'),
  setting('SQL of shared rows', 'clickhouse.shared=true,clickhouse.sql.user=sql', 'clickhouse.sql: there is no SQL'),
  setting(
    'a backup of shared rows',
    'clickhouse.shared=true,jobs.backup.schedule=0 3 * * *,jobs.backup.to=s3://a/b',
    'jobs.backup.schedule: it cannot be used where replicas share',
  ),
  setting(
    'a restore of shared rows',
    'clickhouse.shared=true,writer.stopped=true,jobs.restore.from=s3://a/b/c',
    'jobs.restore.from: it cannot be used where replicas share',
  ),
  setting(
    'more partitions of shared rows',
    'clickhouse.shared=true,ingestApi.stopped=true,writer.stopped=true,jobs.growPartitions.to=96',
    'jobs.growPartitions.to: it cannot be used where replicas share',
  ),
  setting('a server that does not exist', 'jobs.server=a3', 'clickhouse.servers has no a3'),
  setting('an Ingress without a host', 'ingestApi.ingress.enabled=true', 'ingestApi.ingress.host'),
  setting('a route without a Gateway', 'queryApi.httpRoute.enabled=true', 'queryApi.httpRoute.parentRefs'),
];

/** Returns the settings of one of several servers of ClickHouse. */
function server(index: number, name: string): string {
  return `clickhouse.servers[${index}].name=${name},clickhouse.servers[${index}].url=http://c`;
}

function setting(name: string, set: string, found: string): PlantedValueFault {
  return { name: `values: ${name}`, found, args: ['--set', set] };
}
