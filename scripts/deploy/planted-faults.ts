import { type KubernetesObject, titleOf } from './kubernetes-object.ts';

/** A fault in the objects that everything.yaml gives, and what has to find it. */
export interface PlantedObjectFault {
  readonly name: string;
  /** Stands in an error of the checks. */
  readonly found: string;
  /** Returns the objects with the fault; leaves those given as they are. */
  plant(objects: readonly KubernetesObject[]): readonly KubernetesObject[];
}

/** A fault in the values, and what has to refuse it. */
export interface PlantedValueFault {
  readonly name: string;
  readonly found: string;
  /** For helm, besides minimal.yaml. */
  readonly args: readonly string[];
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
    'selects the pods of 3',
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
  fault('a name with capital letters', 'Service events-writer', ['metadata', 'name'], 'Writer', 'not a DNS label'),
  fault('two objects of one name', 'Service events-writer', ['metadata', 'name'], 'events-query-api', 'exists twice'),
];

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
  setting('a password without SASL', 'kafka.sasl.passwordSecret.name=account', 'need a mechanism'),
  setting('a certificate of ClickHouse without https', 'clickhouse.caSecret.name=ca', 'certificates need https'),
  setting(
    'a password beside a certificate',
    'clickhouse.url=https://c,clickhouse.query.passwordSecret.name=a,clickhouse.query.certificateSecret=b',
    'not both',
  ),
  setting('an Ingress without a host', 'ingestApi.ingress.enabled=true', 'ingestApi.ingress.host'),
  setting('a route without a Gateway', 'queryApi.httpRoute.enabled=true', 'queryApi.httpRoute.parentRefs'),
];

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

function setting(name: string, set: string, found: string): PlantedValueFault {
  return { name: `values: ${name}`, found, args: ['--set', set] };
}
