import { type KubernetesObject, objectsOf, podsOf } from './kubernetes-object.ts';

/** The variables with addresses that a pod connects to. */
const ADDRESSES: readonly string[] = [
  ...[
    'CLICKHOUSE_URL',
    'CLICKHOUSE_WEBHOOKS_URL',
    'INGEST_URLS',
    'WRITER_URL',
    'REPLAY_URL',
    'INGEST_URL',
    'QUERY_URL',
    'KAFKA_SASL_TOKEN_URL',
  ],
  'OTEL_EXPORTER_OTLP_ENDPOINT',
];

/** Where every pod looks up names. */
const DNS = ['53/UDP', '53/TCP'] as const;

/** What receivers of webhooks listen on. */
const RECEIVERS = ['443/TCP', '80/TCP'] as const;

/** Returns what a network policy keeps a pod from that its environment says it connects to. */
export function networkErrors(objects: readonly KubernetesObject[]): readonly string[] {
  return objectsOf(objects, 'NetworkPolicy').flatMap(({ name, spec }) => {
    const allowed = spec.egress.flatMap(({ ports }) =>
      ports.map(({ port, protocol = 'TCP' }) => `${port}/${protocol}`),
    );
    const selected = podsOf(objects).filter(({ labels }) =>
      Object.entries(spec.podSelector.matchLabels).every(([label, value]) => labels[label] === value),
    );
    const environment = selected.flatMap(({ spec: { containers } }) =>
      containers.flatMap(({ env }) => env.map(({ name: variable, value = '' }) => [variable, value] as const)),
    );
    const missing = [...DNS, ...environment.flatMap(([variable, value]) => portsOf(variable, value))].filter(
      (port) => !allowed.includes(port),
    );
    return [...new Set(missing)].map((port) => `NetworkPolicy ${name}: its pods cannot connect to ${port}`);
  });
}

function portsOf(variable: string, value: string): readonly string[] {
  if (variable === 'CLICKHOUSE_WEBHOOKS_USER') return RECEIVERS;
  if (variable === 'KAFKA_BROKERS') return value.split(',').map((broker) => `${broker.split(':').at(-1)}/TCP`);
  if (!ADDRESSES.includes(variable)) return [];
  return value.split(',').map((address) => {
    const { port, protocol } = new URL(address);
    return `${port || (protocol === 'https:' ? 443 : 80)}/TCP`;
  });
}
