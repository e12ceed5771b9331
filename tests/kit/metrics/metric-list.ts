import { createIngestMetrics } from '@sluice/ingest-api/metrics';
import { AlertMetrics } from '@sluice/query-api/alerts/alert-metrics';
import { declareMemoryMetrics, QueryMetrics, StreamMetrics } from '@sluice/query-api/metrics';
import { declareServerMetrics, GivenUpServers } from '@sluice/query-api/store/servers/server-metrics';
import { WebhookMetrics } from '@sluice/query-api/webhooks/webhook-metrics';
import { createRateLimitMetrics, HttpMetrics } from '@sluice/shared/http/metrics';
import { declareKeysFileMetrics } from '@sluice/shared/keys/measured-key-ring';
import { configSchema } from '@sluice/writer/config';
import { declareMeasuredMetrics } from '@sluice/writer/measured-metrics';
import { createWriterMetrics } from '@sluice/writer/metrics';
import { type Metric, type MetricObject, Registry } from 'prom-client';
import { SERVICE_NAMES, type ServiceName } from '../service.ts';

/** A metric as a service declares it. */
export interface MetricDescription {
  /** As `# TYPE` has it. A histogram's series are this with `_bucket`, `_sum` and `_count`. */
  readonly name: string;
  readonly type: 'counter' | 'gauge' | 'histogram';
  /** Without `le`, which each histogram's buckets have. */
  readonly labels: readonly string[];
  readonly help: string;
  /** The services that have it. */
  readonly services: readonly ServiceName[];
  /** Whether they have it only with a file of ClickHouse servers. */
  readonly isOfServers: boolean;
}

type Declarations = Readonly<Record<ServiceName, (registry: Registry) => void>>;

/** The declarations that a service makes at its start. */
const DECLARATIONS: Declarations = {
  'ingest-api'(registry) {
    declareForKeys(registry);
    createIngestMetrics(registry);
  },
  writer(registry) {
    new HttpMetrics(registry);
    createWriterMetrics(registry);
    const unknown = async () => undefined;
    const config = configSchema.parse({ KAFKA_BROKERS: 'kafka:9092', CLICKHOUSE_URL: 'http://clickhouse:8123' });
    const ofAll = { lag: unknown, server: unknown, erasures: unknown };
    const readings = { ...ofAll, backupAge: unknown, audits: unknown, comparisons: unknown };
    declareMeasuredMetrics(registry, { ...readings, replicas: () => undefined }, config);
  },
  'query-api'(registry) {
    declareForKeys(registry);
    new QueryMetrics(registry);
    declareMemoryMetrics(registry, 0, () => 0);
    new StreamMetrics(registry);
    new WebhookMetrics(registry);
    new AlertMetrics(registry);
  },
};

/** The metrics that a service makes only with a file of ClickHouse servers. */
const OF_SERVERS: Declarations = {
  'ingest-api': () => undefined,
  writer: () => undefined,
  'query-api'(registry) {
    new GivenUpServers(registry);
    declareServerMetrics(registry, async () => [], unknownFile);
  },
};

/** The metrics of a service whose requests need keys. */
function declareForKeys(registry: Registry): void {
  new HttpMetrics(registry);
  createRateLimitMetrics(registry);
  declareKeysFileMetrics(registry, unknownFile);
}

function unknownFile() {
  return { modifiedMs: undefined, isValid: false };
}

/**
 * Returns all metrics of the services, each once, in the order of their declarations; without those of the process and of
 * Node.js (`process_…`, `nodejs_…`), which prom-client adds.
 */
export function listMetrics(): MetricDescription[] {
  const found = new Map<string, MetricDescription>();
  for (const service of SERVICE_NAMES) {
    for (const declare of [DECLARATIONS[service], OF_SERVERS[service]]) {
      const registry = new Registry();
      declare(registry);
      for (const metric of registry.getMetricsAsArray()) {
        const services = [...(found.get(metric.name)?.services ?? []), service];
        const isOfServers = declare === OF_SERVERS[service];
        found.set(metric.name, { ...declarationOf(registry, metric), services, isOfServers });
      }
    }
  }
  return [...found.values()];
}

/** A metric, as it is seen in `/metrics` of one service. */
export type MetricDeclaration = Omit<MetricDescription, 'services' | 'isOfServers'>;

function declarationOf(registry: Registry, { name, help, type }: MetricObject): MetricDeclaration {
  // The library keeps the names of the labels without saying so in its types.
  const { labelNames } = registry.getSingleMetric(name) as Metric & { readonly labelNames: readonly string[] };
  return { name, help, type: String(type) as MetricDescription['type'], labels: labelNames };
}
