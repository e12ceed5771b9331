/** The values of one metric in the text format of Prometheus, one for each of its label sets. */
export function valuesOf(text: string, metric: string): number[] {
  return text.split('\n').flatMap((line) => {
    if (!line.startsWith(metric)) return [];
    const [, value] = /^(?:\{.*\})? (\S+)/.exec(line.slice(metric.length)) ?? [];
    return value === undefined ? [] : [Number(value)];
  });
}

/** Reads the `/metrics` of a service; `undefined` when it does not respond. */
export type ReadMetrics = (serviceUrl: string) => Promise<string | undefined>;

const TIMEOUT_MS = 2_000;

/** A scrape makes the writer ask Kafka for its lag, so that any number of readers share one. */
const KEPT_MS = 5_000;

/** Creates a reader that asks each service at most once in five seconds. */
export function createMetricsReader(): ReadMetrics {
  const kept = new Map<string, { readonly readAt: number; readonly text: Promise<string | undefined> }>();
  return async (serviceUrl) => {
    const now = performance.now();
    const last = kept.get(serviceUrl);
    if (last && now - last.readAt < KEPT_MS) return await last.text;
    const text = scrape(serviceUrl);
    kept.set(serviceUrl, { readAt: now, text });
    return await text;
  };
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
