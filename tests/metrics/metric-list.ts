import { createIngestMetrics } from '@sluice/ingest-api/metrics';
import { declareMemoryMetrics, QueryMetrics, StreamMetrics } from '@sluice/query-api/metrics';
import { createRateLimitMetrics, HttpMetrics } from '@sluice/shared/http/metrics';
import { declareKeysFileMetrics } from '@sluice/shared/keys/measured-key-ring';
import { configSchema } from '@sluice/writer/config';
import { declareMeasuredMetrics } from '@sluice/writer/measured-metrics';
import { createWriterMetrics } from '@sluice/writer/metrics';
import { type Metric, type MetricObject, Registry } from 'prom-client';
import type { ServiceName } from '../support/service.ts';

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
}

/** The declarations that a service makes at its start. */
const DECLARATIONS: Readonly<Record<ServiceName, (registry: Registry) => void>> = {
  'ingest-api'(registry) {
    declareForKeys(registry);
    createIngestMetrics(registry);
  },
  writer(registry) {
    new HttpMetrics(registry);
    createWriterMetrics(registry);
    const unknown = async () => undefined;
    const config = configSchema.parse({ KAFKA_BROKERS: 'kafka:9092', CLICKHOUSE_URL: 'http://clickhouse:8123' });
    declareMeasuredMetrics(registry, { lag: unknown, server: unknown, erasures: unknown, backupAge: unknown }, config);
  },
  'query-api'(registry) {
    declareForKeys(registry);
    new QueryMetrics(registry);
    declareMemoryMetrics(registry, 0, () => 0);
    new StreamMetrics(registry);
  },
};

/** The metrics of a service whose requests need keys. */
function declareForKeys(registry: Registry): void {
  new HttpMetrics(registry);
  createRateLimitMetrics(registry);
  declareKeysFileMetrics(registry, () => ({ modifiedMs: undefined, isValid: false }));
}

/**
 * Returns all metrics of the services, each once, in the order of their declarations; without those of the process and of
 * Node.js (`process_…`, `nodejs_…`), which prom-client adds.
 */
export function listMetrics(): MetricDescription[] {
  const found = new Map<string, MetricDescription>();
  for (const [service, declare] of Object.entries(DECLARATIONS) as [ServiceName, (registry: Registry) => void][]) {
    const registry = new Registry();
    declare(registry);
    for (const metric of registry.getMetricsAsArray()) {
      const services = [...(found.get(metric.name)?.services ?? []), service];
      found.set(metric.name, { ...descriptionOf(registry, metric), services });
    }
  }
  return [...found.values()];
}

function descriptionOf(registry: Registry, { name, help, type }: MetricObject): Omit<MetricDescription, 'services'> {
  // The library keeps the names of the labels without saying so in its types.
  const { labelNames } = registry.getSingleMetric(name) as Metric & { readonly labelNames: readonly string[] };
  return { name, help, type: String(type) as MetricDescription['type'], labels: labelNames };
}
