import { type KubernetesObject, objectsOf, podsOf, titleOf, type View } from './kubernetes-object.ts';
import { networkErrors } from './network-checks.ts';
import { podErrors } from './pod-checks.ts';
import { stoppedErrors } from './stopped-checks.ts';

type Labels = Readonly<Record<string, string>>;

/**
 * Returns what is wrong between objects that are installed together, and with names, which no schema says: selectors that
 * match nothing, references to what is not there, ports without a container, limits that contradict one another.
 */
export function relationErrors(objects: readonly KubernetesObject[]): readonly string[] {
  return [
    ...nameErrors(objects),
    ...podErrors(objects),
    ...selectorErrors(objects),
    ...serviceErrors(objects),
    ...scalingErrors(objects),
    ...routeErrors(objects),
    ...networkErrors(objects),
    ...stoppedErrors(objects),
  ];
}

/** RFC 1123, as Kubernetes wants it of most names. Those of Services have at most 63 characters. */
const NAME = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/;
const LABEL_VALUE = /^([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$/;

function nameErrors(objects: readonly KubernetesObject[]): string[] {
  const seen = new Set<string>();
  return objects.flatMap((object) => {
    const title = titleOf(object);
    const errors: string[] = [];
    if (!NAME.test(object.metadata.name)) errors.push(`${title}: its name is not a DNS label`);
    if (seen.has(title)) errors.push(`${title}: exists twice`);
    seen.add(title);
    const labels = Object.entries(object.metadata.labels).filter(([, value]) => !LABEL_VALUE.test(value));
    return [...errors, ...labels.map(([label, value]) => `${title}: "${value}" is no value for the label ${label}`)];
  });
}

function matches(selector: Labels, labels: Labels): boolean {
  return Object.entries(selector).every(([name, value]) => labels[name] === value);
}

function selectorErrors(objects: readonly KubernetesObject[]): string[] {
  const deployments = objectsOf(objects, 'Deployment');
  const errors = deployments
    .filter(({ spec }) => !matches(spec.selector.matchLabels, spec.template.metadata.labels))
    .map(({ name }) => `Deployment ${name}: its selector does not match its pods`);
  const selectors = [
    ...objectsOf(objects, 'Service').map(({ name, spec }) => [`Service ${name}`, spec.selector] as const),
    ...objectsOf(objects, 'PodDisruptionBudget').map(
      ({ name, spec }) => [`PodDisruptionBudget ${name}`, spec.selector.matchLabels] as const,
    ),
    ...objectsOf(objects, 'NetworkPolicy').map(
      ({ name, spec }) => [`NetworkPolicy ${name}`, spec.podSelector.matchLabels] as const,
    ),
  ];
  for (const [title, selector] of selectors) {
    const selected = podsOf(objects).filter(({ labels }) => matches(selector, labels));
    if (selected.length !== 1) {
      errors.push(`${title}: selects the pods of ${selected.length} Deployments or Jobs instead of one`);
    }
  }
  return errors;
}

function serviceErrors(objects: readonly KubernetesObject[]): string[] {
  const deployments = objectsOf(objects, 'Deployment');
  const services = objectsOf(objects, 'Service');
  const errors = services.flatMap(({ name, spec }) => {
    const selected = deployments.filter((deployment) =>
      matches(spec.selector, deployment.spec.template.metadata.labels),
    );
    const ports = selected.flatMap((deployment) =>
      deployment.spec.template.spec.containers.flatMap(({ ports }) => ports),
    );
    return spec.ports
      .filter(({ targetPort }) => !ports.some((port) => port.name === targetPort || port.containerPort === targetPort))
      .map(({ targetPort }) => `Service ${name}: no container has the port ${targetPort}`);
  });
  for (const { name, spec } of objectsOf(objects, 'ServiceMonitor')) {
    for (const { port } of spec.endpoints) {
      const scraped = services.filter((service) => matches(spec.selector.matchLabels, service.labels));
      const withPort = scraped.filter((service) => service.spec.ports.some((known) => known.name === port));
      if (withPort.length !== services.length) {
        errors.push(
          `ServiceMonitor ${name}: finds the port ${port} of ${withPort.length} of ${services.length} Services`,
        );
      }
    }
  }
  return errors;
}

function scalingErrors(objects: readonly KubernetesObject[]): string[] {
  const deployments = objectsOf(objects, 'Deployment');
  const find = (target: string) => deployments.find(({ name }) => name === target)?.spec;
  const scalers = [
    ...objectsOf(objects, 'HorizontalPodAutoscaler').map((scaler) => ({ kind: 'HorizontalPodAutoscaler', ...scaler })),
    ...objectsOf(objects, 'ScaledObject').map((scaler) => ({ kind: 'ScaledObject', ...scaler })),
  ];
  const errors = scalers.flatMap(({ kind, name, spec }) => {
    const target = find(spec.scaleTargetRef.name);
    if (!target) return [`${kind} ${name}: there is no Deployment ${spec.scaleTargetRef.name}`];
    return target.replicas === undefined ? [] : [`${kind} ${name}: its Deployment sets replicas as well`];
  });
  const scaled = new Map(objectsOf(objects, 'ScaledObject').map(({ spec }) => [spec.scaleTargetRef.name, spec]));
  for (const { name, spec } of deployments) {
    const most = partitionsOf(spec);
    const pods = spec.replicas ?? scaled.get(name)?.maxReplicaCount;
    if (most !== undefined && pods !== undefined && pods > most) {
      errors.push(`Deployment ${name}: up to ${pods} writers for ${most} partitions`);
    }
  }
  return errors;
}

/** `KAFKA_PARTITIONS` of a writer; undefined for others. */
function partitionsOf({ template }: View<'Deployment'>): number | undefined {
  const writer = template.spec.containers.find(({ name }) => name === 'writer');
  const value = writer?.env.find(({ name }) => name === 'KAFKA_PARTITIONS')?.value;
  return value === undefined ? undefined : Number(value);
}

function routeErrors(objects: readonly KubernetesObject[]): string[] {
  const services = objectsOf(objects, 'Service');
  const backends = [
    ...objectsOf(objects, 'Ingress').flatMap(({ name, spec }) =>
      spec.rules
        .flatMap(({ http }) => http.paths)
        .map(({ backend: { service } }) => {
          return { title: `Ingress ${name}`, service: service.name, port: Object.values(service.port)[0] };
        }),
    ),
    ...objectsOf(objects, 'HTTPRoute').flatMap(({ name, spec }) =>
      spec.rules
        .flatMap(({ backendRefs }) => backendRefs)
        .map((backend) => ({ title: `HTTPRoute ${name}`, service: backend.name, port: backend.port })),
    ),
  ];
  return backends
    .filter(({ service, port }) => {
      const ports = services.find(({ name }) => name === service)?.spec.ports ?? [];
      return !ports.some((known) => known.name === port || known.port === port);
    })
    .map(({ title, service, port }) => `${title}: there is no Service ${service} with the port ${port}`);
}
