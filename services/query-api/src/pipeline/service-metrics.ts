/** The values of one metric in the text format of Prometheus, one for each of its label sets. */
export function valuesOf(text: string, metric: string): number[] {
  return text.split('\n').flatMap((line) => {
    if (!line.startsWith(metric)) return [];
    const [, value] = /^(?:\{.*\})? (\S+)/.exec(line.slice(metric.length)) ?? [];
    return value === undefined ? [] : [Number(value)];
  });
}

const TIMEOUT_MS = 2_000;

/** A scrape makes the writer ask Kafka for its lag, so that any number of readers share one. */
const KEPT_MS = 5_000;

/** Reads the metrics of services, of each at most once in five seconds. */
export class ServiceMetrics {
  readonly #kept = new Map<string, { readonly readAt: number; readonly text: Promise<string | undefined> }>();

  /** Reads the `/metrics` of a service; `undefined` when it does not respond. */
  async read(serviceUrl: string): Promise<string | undefined> {
    const now = performance.now();
    const last = this.#kept.get(serviceUrl);
    if (last && now - last.readAt < KEPT_MS) return await last.text;
    const text = scrape(serviceUrl);
    this.#kept.set(serviceUrl, { readAt: now, text });
    return await text;
  }
}

async function scrape(serviceUrl: string): Promise<string | undefined> {
  try {
    const url = `${serviceUrl.replace(/\/+$/, '')}/metrics`;
    const response = await fetch(url, { signal: AbortSignal.timeout(TIMEOUT_MS) });
    const text = await response.text();
    return response.ok ? text : undefined;
  } catch {
    return undefined;
  }
}
