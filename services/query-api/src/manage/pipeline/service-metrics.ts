/** A value of a metric, with those of its labels. */
export interface MetricSample {
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

/** Returns the series of one metric in the text format of Prometheus. */
export function samplesOf(text: string, metric: string): MetricSample[] {
  return text.split('\n').flatMap((line) => {
    if (!line.startsWith(metric)) return [];
    const [, labels = '', value] = /^(?:\{(.*)\})? (\S+)/.exec(line.slice(metric.length)) ?? [];
    return value === undefined ? [] : [{ labels: parseLabels(labels), value: Number(value) }];
  });
}

/** As {@link samplesOf}, the values alone. */
export function valuesOf(text: string, metric: string): number[] {
  return samplesOf(text, metric).map(({ value }) => value);
}

export function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}

function parseLabels(text: string): Record<string, string> {
  const found = text.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g);
  return Object.fromEntries([...found].map(([, label = '', value = '']) => [label, unescaped(value)]));
}

function unescaped(value: string): string {
  return value.replaceAll(/\\(.)/g, (_, character: string) => (character === 'n' ? '\n' : character));
}

/** A writer responds after four seconds when Kafka or ClickHouse does not respond to it. */
const TIMEOUT_MS = 5_000;

/** A scrape makes a writer ask Kafka and ClickHouse, so that any number of readers share one. */
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
