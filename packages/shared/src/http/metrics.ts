import { Counter, Histogram, type Registry } from 'prom-client';

/** The metrics of every HTTP service. */
export class HttpMetrics {
  readonly refusedRequests: Counter<'code'>;
  readonly #requestDuration: Histogram<'route' | 'method' | 'status'>;
  /** The histogram's series, by their labels: to find one by its labels costs the library more than to add to it. */
  readonly #series = new Map<string, Histogram.Internal<'route' | 'method' | 'status'>>();

  constructor(registry: Registry) {
    const registers = [registry];
    this.#requestDuration = new Histogram({
      name: 'http_request_duration_seconds',
      help: 'Time from the request to the end of its response, by route, method and status.',
      labelNames: ['route', 'method', 'status'],
      buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
      registers,
    });
    this.refusedRequests = new Counter({
      name: 'sluice_http_refused_requests_total',
      help: 'Requests whose response was a problem, by its code.',
      labelNames: ['code'],
      registers,
    });
  }

  observeRequest(route: string, method: string, status: number, seconds: number): void {
    const key = `${method} ${status} ${route}`;
    let found = this.#series.get(key);
    if (!found) {
      found = this.#requestDuration.labels(route, method, String(status));
      this.#series.set(key, found);
    }
    found.observe(seconds);
  }
}

/** The metrics of a service that holds API keys to their rates. */
export function createRateLimitMetrics(registry: Registry) {
  return {
    rateLimitedRequests: new Counter({
      name: 'sluice_http_rate_limited_requests_total',
      help: 'Requests that got 429 because their key was over its rate.',
      registers: [registry],
    }),
  };
}
