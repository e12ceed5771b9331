import { z } from 'zod';

const labels = z.record(z.string(), z.string());

/** An object of Kubernetes, as a manifest has it. Others than the fields of every object are in {@link views}. */
export const kubernetesObject = z.looseObject({
  apiVersion: z.string(),
  kind: z.string(),
  metadata: z.looseObject({ name: z.string(), labels: labels.default({}), annotations: labels.optional() }),
});

export type KubernetesObject = z.output<typeof kubernetesObject>;

const selector = z.looseObject({ matchLabels: labels.default({}) });
const httpGet = z.looseObject({ httpGet: z.looseObject({ port: z.union([z.string(), z.number()]) }) });

const container = z.looseObject({
  name: z.string(),
  image: z.string(),
  command: z.array(z.string()).default([]),
  env: z.array(z.looseObject({ name: z.string(), value: z.string().default('') })).default([]),
  ports: z.array(z.looseObject({ name: z.string(), containerPort: z.number() })).default([]),
  volumeMounts: z.array(z.looseObject({ name: z.string(), mountPath: z.string() })).default([]),
  startupProbe: httpGet.optional(),
  livenessProbe: httpGet.optional(),
  readinessProbe: httpGet.optional(),
  lifecycle: z.looseObject({ preStop: z.looseObject({ sleep: z.looseObject({ seconds: z.number() }) }) }).optional(),
  securityContext: z.looseObject({}).optional(),
  resources: z.looseObject({ requests: labels.default({}), limits: labels.default({}) }).optional(),
});

const items = z.array(z.looseObject({ key: z.string(), path: z.string() }));
const projectedSource = z.looseObject({
  secret: z.looseObject({ items }).optional(),
  configMap: z.looseObject({ name: z.string(), items }).optional(),
});

const podSpec = z.looseObject({
  containers: z.array(container),
  volumes: z
    .array(
      z.looseObject({
        name: z.string(),
        projected: z.looseObject({ sources: z.array(projectedSource) }).default({ sources: [] }),
      }),
    )
    .default([]),
  securityContext: z.looseObject({}).optional(),
  automountServiceAccountToken: z.boolean().optional(),
  terminationGracePeriodSeconds: z.number().default(30),
  restartPolicy: z.string().default('Always'),
});

const podTemplate = z.looseObject({
  metadata: z.looseObject({ labels, annotations: labels.default({}) }),
  spec: podSpec,
});

const backendPort = z.union([z.looseObject({ name: z.string() }), z.looseObject({ number: z.number() })]);
const ingressPath = z.looseObject({
  path: z.string(),
  backend: z.looseObject({ service: z.looseObject({ name: z.string(), port: backendPort }) }),
});

/** The files of a ConfigMap. */
const configMap = kubernetesObject.extend({ kind: z.literal('ConfigMap'), data: labels.default({}) });

/** Returns the content of a file of a ConfigMap; undefined when there is none. */
export function configMapFile(objects: readonly KubernetesObject[], name: string, key: string): string | undefined {
  const found = objects.find(({ kind, metadata }) => kind === 'ConfigMap' && metadata.name === name);
  return found && configMap.parse(found).data[key];
}

/** What the checks read of objects, by kind. Other fields are those of Kubernetes, which kubernetes-models knows. */
export const views = {
  Deployment: z.looseObject({
    replicas: z.number().optional(),
    selector,
    template: podTemplate,
  }),
  CronJob: z.looseObject({ jobTemplate: z.looseObject({ spec: z.looseObject({ template: podTemplate }) }) }),
  Job: z.looseObject({ template: podTemplate }),
  Pod: podSpec,
  Service: z.looseObject({
    selector: labels,
    ports: z.array(
      z.looseObject({ name: z.string(), port: z.number(), targetPort: z.union([z.string(), z.number()]) }),
    ),
  }),
  PodDisruptionBudget: z.looseObject({ selector }),
  NetworkPolicy: z.looseObject({
    podSelector: selector,
    egress: z.array(
      z.looseObject({ ports: z.array(z.looseObject({ port: z.number(), protocol: z.string().optional() })) }),
    ),
  }),
  HorizontalPodAutoscaler: z.looseObject({ scaleTargetRef: z.looseObject({ name: z.string() }) }),
  ScaledObject: z.looseObject({ scaleTargetRef: z.looseObject({ name: z.string() }), maxReplicaCount: z.number() }),
  Ingress: z.looseObject({
    rules: z.array(z.looseObject({ http: z.looseObject({ paths: z.array(ingressPath) }) })),
  }),
  HTTPRoute: z.looseObject({
    rules: z.array(z.looseObject({ backendRefs: z.array(z.looseObject({ name: z.string(), port: z.number() })) })),
  }),
  ServiceMonitor: z.looseObject({ selector, endpoints: z.array(z.looseObject({ port: z.string() })) }),
};

export type ViewedKind = keyof typeof views;
export type View<Kind extends ViewedKind> = z.output<(typeof views)[Kind]>;
export type Container = z.output<typeof container>;
export type PodSpec = z.output<typeof podSpec>;

/** Returns the objects of a kind, each with its name and what the checks read of its `spec`. */
export function objectsOf<Kind extends ViewedKind>(
  objects: readonly KubernetesObject[],
  kind: Kind,
): readonly { readonly name: string; readonly labels: Readonly<Record<string, string>>; readonly spec: View<Kind> }[] {
  return objects
    .filter((object) => object.kind === kind)
    .map(({ metadata, ...object }) => ({
      name: metadata.name,
      labels: metadata.labels,
      spec: views[kind].parse(object['spec']) as View<Kind>,
    }));
}

/** The pods that an object starts. */
export interface Pods {
  /** The kind and the name of the object. */
  readonly title: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly spec: PodSpec;
}

/** Returns the pods of all Deployments, CronJobs and Jobs. */
export function podsOf(objects: readonly KubernetesObject[]): readonly Pods[] {
  const templates = [
    ...objectsOf(objects, 'Deployment').map(({ name, spec }) => [`Deployment ${name}`, spec.template] as const),
    ...objectsOf(objects, 'CronJob').map(
      ({ name, spec }) => [`CronJob ${name}`, spec.jobTemplate.spec.template] as const,
    ),
    ...objectsOf(objects, 'Job').map(({ name, spec }) => [`Job ${name}`, spec.template] as const),
  ];
  return templates.map(([title, { metadata, spec }]) => ({ title, labels: metadata.labels, spec }));
}

/** How an object is called in a message. */
export function titleOf({ kind, metadata }: KubernetesObject): string {
  return `${kind} ${metadata.name}`;
}
