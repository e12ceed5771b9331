import { collectDefaultMetrics, type Registry } from 'prom-client';

/**
 * Adds the metrics of the process and of Node.js: memory, CPU time, the delay of the event loop, open files. Once in a
 * process: prom-client observes garbage collections for them, and the observer keeps the registry to the end.
 */
export function withProcessMetrics<Metrics extends Registry>(registry: Metrics): Metrics {
  collectDefaultMetrics({ register: registry });
  return registry;
}
