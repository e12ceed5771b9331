import { type KubernetesObject, titleOf } from './kubernetes-object.ts';

/** A fault in the objects that a file of values gives, and what has to find it. */
export interface PlantedObjectFault {
  readonly name: string;
  /** The file of values. */
  readonly file: string;
  /** Stands in an error of the checks. */
  readonly found: string;
  /** Returns the objects with the fault; leaves those given as they are. */
  plant(objects: readonly KubernetesObject[]): readonly KubernetesObject[];
}

const WRITER = 'Deployment events-writer';
const INGEST = 'Deployment events-ingest-api';
const POD = ['spec', 'template', 'spec'];
const CONTAINER = [...POD, 'containers', '0'];

export const PLANTED_OBJECT_FAULTS: readonly PlantedObjectFault[] = [
  fault('a field that does not exist', WRITER, ['spec', 'replicaz'], 2, `'"replicaz"' does not exist`),
  fault('a field at the wrong place', WRITER, ['spec', 'containers'], [], `'"containers"' does not exist`),
  fault('no selector', WRITER, ['spec', 'selector'], undefined, 'required property selector'),
  fault('a text in place of a number', WRITER, ['spec', 'replicas'], '2', 'replicas must be integer'),
  fault('a number in place of a text', WRITER, [...CONTAINER, 'env', '0', 'value'], 7, 'value must be string'),
  fault('a value that is not one of several', WRITER, ['spec', 'strategy', 'type'], 'Slowly', 'Slowly'),
  fault('an API version that does not exist', INGEST, ['apiVersion'], 'apps/v2', 'no Deployment in apps/v2'),
  fault('a kind that does not exist', INGEST, ['kind'], 'Deploy', 'no Deploy in apps/v1'),
  fault(
    'a field that KEDA does not have',
    'ScaledObject events-writer',
    ['spec', 'maxReplicas'],
    4,
    `'"maxReplicas"' does not`,
  ),
  fault(
    'a trigger of KEDA without a type',
    'ScaledObject events-writer',
    ['spec', 'triggers', '0', 'type'],
    undefined,
    'required property type',
  ),
  fault(
    'a wrong duration of a scrape',
    'ServiceMonitor events',
    ['spec', 'endpoints', '0', 'interval'],
    '15 s',
    'interval',
  ),
  fault(
    'a rule without an expression',
    'PrometheusRule events',
    ['spec', 'groups', '0', 'rules', '0', 'expr'],
    undefined,
    'required property expr',
  ),
  fault(
    'a wrong match of a route',
    'HTTPRoute events-query-api',
    ['spec', 'rules', '0', 'matches', '0', 'path', 'type'],
    'Prefix',
    'type',
  ),
  fault(
    'a selector of other pods',
    WRITER,
    ['spec', 'selector', 'matchLabels', 'app.kubernetes.io/component'],
    'x',
    'selector does not match',
  ),
  fault(
    'a budget that selects nothing',
    'PodDisruptionBudget events-writer',
    ['spec', 'selector', 'matchLabels', 'app.kubernetes.io/component'],
    'x',
    'selects the pods of 0',
  ),
  fault(
    'a budget that selects everything',
    'PodDisruptionBudget events-writer',
    ['spec', 'selector', 'matchLabels'],
    {},
    'selects the pods of 8',
  ),
  fault(
    'a name of a port that is too long',
    WRITER,
    [...CONTAINER, 'ports', '0', 'name'],
    'http-for-everyone',
    'is no name of a port',
  ),
  fault(
    'a probe of a port that does not exist',
    WRITER,
    [...CONTAINER, 'livenessProbe', 'httpGet', 'port'],
    'web',
    'asks the port web',
  ),
  fault(
    'a Service of a port that does not exist',
    'Service events-writer',
    ['spec', 'ports', '0', 'targetPort'],
    'web',
    'no container has the port web',
  ),
  fault(
    'a monitor of a port that does not exist',
    'ServiceMonitor events',
    ['spec', 'endpoints', '0', 'port'],
    'web',
    'finds the port web of 0',
  ),
  fault(
    'an Ingress to a Service that does not exist',
    'Ingress events-ingest-api',
    ['spec', 'rules', '0', 'http', 'paths', '0', 'backend', 'service', 'name'],
    'x',
    'no Service x',
  ),
  fault(
    'a scaler of a Deployment that does not exist',
    'HorizontalPodAutoscaler events-ingest-api',
    ['spec', 'scaleTargetRef', 'name'],
    'x',
    'no Deployment x',
  ),
  fault('replicas beside an autoscaler', INGEST, ['spec', 'replicas'], 2, 'sets replicas as well'),
  fault(
    'more writers than partitions',
    'ScaledObject events-writer',
    ['spec', 'maxReplicaCount'],
    97,
    'up to 97 writers for 96 partitions',
  ),
  fault(
    'a variable that the service does not know',
    WRITER,
    [...CONTAINER, 'env', '0', 'name'],
    'BATCH_AGE',
    'does not know the variable BATCH_AGE',
  ),
  fault(
    'a variable with a value that the service refuses',
    WRITER,
    [...CONTAINER, 'env', '-'],
    { name: 'KAFKA_PARTITIONS', value: '0' },
    'KAFKA_PARTITIONS: must be at least 1',
  ),
  fault(
    'a variable that stands there twice',
    WRITER,
    [...CONTAINER, 'env', '-'],
    { name: 'KAFKA_PARTITIONS', value: '12' },
    'has KAFKA_PARTITIONS twice',
  ),
  fault('a required variable that is missing', WRITER, [...CONTAINER, 'env'], [], 'CLICKHOUSE_URL: is required'),
  fault(
    'a file that is not mounted',
    INGEST,
    [...CONTAINER, 'volumeMounts', '0', 'mountPath'],
    '/etc/other',
    'is not mounted',
  ),
  fault(
    'a secret that no variable names',
    INGEST,
    [...POD, 'volumes', '0', 'projected', 'sources', '0', 'secret', 'items', '0', 'path'],
    'other.json',
    'no variable names it',
  ),
  fault(
    'a mount by subPath',
    INGEST,
    [...CONTAINER, 'volumeMounts', '0', 'subPath'],
    'api-keys.json',
    'subPath keeps updates away',
  ),
  fault(
    'a volume that does not exist',
    INGEST,
    [...CONTAINER, 'volumeMounts', '0', 'name'],
    'x',
    'there is no volume x',
  ),
  fault(
    'a grace period shorter than the drain',
    INGEST,
    [...POD, 'terminationGracePeriodSeconds'],
    30,
    'killed after 30 s',
  ),
  fault('a pod that may be root', WRITER, [...POD, 'securityContext', 'runAsNonRoot'], false, 'runAsNonRoot'),
  fault(
    'a root file system that can be written',
    WRITER,
    [...CONTAINER, 'securityContext', 'readOnlyRootFilesystem'],
    undefined,
    'readOnlyRootFilesystem',
  ),
  fault(
    'capabilities that are kept',
    WRITER,
    [...CONTAINER, 'securityContext', 'capabilities'],
    { drop: ['NET_RAW'] },
    'capabilities',
  ),
  fault(
    'a pod without a limit of memory',
    WRITER,
    [...CONTAINER, 'resources', 'limits'],
    undefined,
    'a limit of memory',
  ),
  fault(
    'a policy that keeps webhooks from their receivers',
    'NetworkPolicy events-query-api',
    ['spec', 'egress', '3', 'ports', '0', 'port'],
    8443,
    'cannot connect to 443/TCP',
  ),
  fault(
    'a policy that keeps query-api from the server of webhooks',
    'NetworkPolicy events-query-api',
    ['spec', 'egress', '2'],
    { ports: [{ port: 8080 }] },
    'cannot connect to 9443/TCP',
  ),
  fault(
    'a policy without DNS',
    'NetworkPolicy events-writer',
    ['spec', 'egress', '0', 'ports', '0', 'protocol'],
    'TCP',
    'cannot connect to 53/UDP',
  ),
  fault('a name with capital letters', 'Service events-writer', ['metadata', 'name'], 'Writer', 'not a DNS label'),
  fault('two objects of one name', 'Service events-writer', ['metadata', 'name'], 'events-query-api', 'exists twice'),
  fault(
    'a policy that keeps a Job from Kafka',
    'NetworkPolicy events-backup',
    ['spec', 'egress', '1', 'ports', '1', 'port'],
    8443,
    'NetworkPolicy events-backup: its pods cannot connect to 9093/TCP',
  ),
  fault(
    'a policy that keeps trench-api from the services',
    'NetworkPolicy events-trench-api',
    ['spec', 'egress'],
    [{ ports: [{ port: 53 }, { port: 53, protocol: 'UDP' }] }],
    'NetworkPolicy events-trench-api: its pods cannot connect to 8080/TCP',
  ),
  fault(
    'a variable that a backup does not know',
    'CronJob events-backup',
    ['spec', 'jobTemplate', ...CONTAINER, 'env', '0', 'name'],
    'BACKUP_S3_KEY',
    'does not know the variable BACKUP_S3_KEY',
  ),
  fault(
    'a variable that an audit does not know',
    'CronJob events-audit',
    ['spec', 'jobTemplate', ...CONTAINER, 'env', '0', 'name'],
    'AUDIT_SHARE',
    'does not know the variable AUDIT_SHARE',
  ),
  fault(
    'a folder that an audit does not get',
    'CronJob events-audit',
    ['spec', 'jobTemplate', ...POD, 'volumes', '1', 'name'],
    'other',
    'there is no volume work',
  ),
  fault(
    'a policy that keeps the doctor from the services',
    'NetworkPolicy events-doctor',
    ['spec', 'egress', '2'],
    { ports: [{ port: 9090 }] },
    'NetworkPolicy events-doctor: its pods cannot connect to 8080/TCP',
  ),
  fault(
    'a restart of a Job that never ends',
    'Job events-migrations',
    [...POD, 'restartPolicy'],
    'Always',
    'a Job restarts its pod itself',
  ),
  ...[
    fault(
      'a file of servers that is not valid',
      'ConfigMap check-sluice-servers',
      ['data', 'servers.json'],
      '{"servers": []}',
      'CLICKHOUSE_SERVERS_FILE: servers: must name a server',
    ),
    fault(
      'a file of servers that does not exist',
      'ConfigMap check-sluice-servers',
      ['metadata', 'name'],
      'x',
      'CLICKHOUSE_URL: is required',
    ),
    fault(
      'a server that the file does not have',
      'Deployment check-sluice-writer-a1',
      [...CONTAINER, 'env', '4', 'value'],
      'a3',
      'CLICKHOUSE_URL: is required',
    ),
    fault(
      'a selector of the writers of all servers',
      'PodDisruptionBudget check-sluice-writer-a1',
      ['spec', 'selector', 'matchLabels', 'sluice/server'],
      undefined,
      'selects the pods of 2',
    ),
    fault(
      'a policy for other pods',
      'NetworkPolicy check-sluice-compare',
      ['spec', 'podSelector', 'matchLabels', 'app.kubernetes.io/component'],
      'x',
      'selects the pods of 0',
    ),
    fault(
      'a variable that the command does not know',
      'CronJob check-sluice-compare',
      ['spec', 'jobTemplate', ...CONTAINER, 'env', '0', 'name'],
      'CLICKHOUSE',
      'does not know the variable CLICKHOUSE',
    ),
  ].map((planted) => ({ ...planted, file: 'mirrors.yaml' })),
  {
    ...fault(
      'a replica that writers do not hear of',
      'Deployment check-sluice-writer-r1',
      ['spec', 'template', 'metadata', 'annotations', 'sluice/servers-sha256'],
      'x',
      'check-sluice-writer-r1: it does not start again when a replica is added',
    ),
    file: 'replicas.yaml',
  },
  {
    ...fault(
      'an autoscaler that keeps its minimum of writers',
      'ScaledObject check-sluice-writer-a1',
      ['metadata', 'annotations'],
      undefined,
      'check-sluice-writer-a1 may run meanwhile',
    ),
    file: 'restore.yaml',
  },
  {
    ...fault(
      'ingest-api beside more partitions',
      'Deployment check-sluice-ingest-api',
      ['spec', 'replicas'],
      2,
      'check-sluice-ingest-api may run meanwhile',
    ),
    file: 'grow-partitions.yaml',
  },
];

/** Faults in what containers get of the values; `file` is the name of a set of them. */
export const PLANTED_PASSED_FAULTS: readonly PlantedObjectFault[] = [
  fault(
    'a variable with another value',
    'Deployment passed-query-api',
    [...CONTAINER, 'env', '0', 'value'],
    'x',
    'is x, and must be',
  ),
  fault(
    'a variable under another name',
    'Deployment passed-ingest-api',
    [...CONTAINER, 'env', '0', 'name'],
    'OTHER',
    'is not set, and must be',
  ),
  fault(
    'another key of a secret',
    'Deployment passed-writer',
    [...POD, 'volumes', '0', 'projected', 'sources', '0', 'secret', 'items', '0', 'key'],
    'ca.crt',
    'KAFKA_SSL_CA_FILE is kafka-ca/ca.crt, and must be kafka-ca/kafka-ca-key',
  ),
  fault(
    'the secret of another account',
    'Deployment passed-query-api',
    [...POD, 'volumes', '0', 'projected', 'sources', '0', 'secret', 'name'],
    'writer',
    'API_KEYS_FILE is writer/keys-key',
  ),
  fault(
    'an account of pods without its annotations',
    'ServiceAccount passed',
    ['metadata', 'annotations'],
    undefined,
    'ServiceAccount: example.com/role is not set',
  ),
  fault(
    'an alert with another address of its runbook',
    'PrometheusRule passed',
    ['spec', 'groups', '0', 'rules', '20', 'annotations', 'runbook_url'],
    'docs/operate/alerts.md',
    'PrometheusRule: it has {"alert"',
  ),
].map((planted) => ({ ...planted, file: 'passwords and tracing' }));

/**
 * @param title the object's kind and name
 * @param path of the field that is set; "-" appends to a list
 * @param value `undefined` removes the field
 * @param found stands in the error
 */
function fault(
  name: string,
  title: string,
  path: readonly string[],
  value: unknown,
  found: string,
): PlantedObjectFault {
  return {
    name: `${title}: ${name}`,
    file: 'everything.yaml',
    found,
    plant(objects) {
      if (!objects.some((object) => titleOf(object) === title)) throw new Error(`${name}: there is no ${title}`);
      return objects.map((object) => (titleOf(object) === title ? withField(object, path, value) : object));
    },
  };
}

function withField(object: KubernetesObject, path: readonly string[], value: unknown): KubernetesObject {
  const changed = structuredClone(object);
  let parent = changed as Record<string, unknown>;
  for (const name of path.slice(0, -1)) parent = parent[name] as Record<string, unknown>;
  const [last = ''] = path.slice(-1);
  if (Array.isArray(parent) && last === '-') parent.push(value);
  else if (value === undefined) delete parent[last];
  else parent[last] = value;
  return changed;
}
