import type { Service } from './service.ts';

/** Sums a metric of a service over all of its series that have these label values; 0 when there is none. */
export async function readMetric(
  service: Pick<Service, 'url'>,
  name: string,
  labels: Readonly<Record<string, string>> = {},
): Promise<number> {
  return (await findMetric(service, name, labels)) ?? 0;
}

/** As {@link readMetric}, over several services. */
export async function sumMetric(services: readonly Pick<Service, 'url'>[], name: string): Promise<number> {
  const each = await Promise.all(services.map((service) => readMetric(service, name)));
  return each.reduce((sum, one) => sum + one, 0);
}

/** As {@link readMetric}, but `undefined` when there is none. */
export async function findMetric(
  service: Pick<Service, 'url'>,
  name: string,
  labels: Readonly<Record<string, string>> = {},
): Promise<number | undefined> {
  const text = await (await fetch(`${service.url}/metrics`)).text();
  const wanted = Object.entries(labels).map(([label, value]) => `${label}="${value}"`);
  let sum: number | undefined;
  for (const line of text.split('\n')) {
    const [, found, given = '', value] = /^(\w+)(?:\{(.*)\})? (\S+)$/.exec(line) ?? [];
    if (found === name && wanted.every((label) => given.split(',').includes(label))) sum = (sum ?? 0) + Number(value);
  }
  return sum;
}

/** The number of submissions to which an ingest-api responded with this status. */
export async function countResponses(ingest: Pick<Service, 'url'>, status: number): Promise<number> {
  return await readMetric(ingest, 'http_request_duration_seconds_count', { method: 'POST', status: String(status) });
}
