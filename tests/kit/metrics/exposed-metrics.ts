import { listMetrics, type MetricDeclaration } from './metric-list.ts';

/** The metrics of the process and of Node.js, which prom-client adds. */
const OF_PROCESS = /^(process|nodejs)_/;

/** What is listed. */
export const listed = listMetrics();

/** Returns what `/metrics` of a service says of each metric. One without series has the labels that are listed. */
export async function readExposed(url: string): Promise<MetricDeclaration[]> {
  return (await readMetrics(url))
    .split(/^(?=# HELP )/m)
    .map((part) => {
      const [, name = '', help = ''] = /^# HELP (\S+) (.*)$/m.exec(part) ?? [];
      const [, type] = /^# TYPE \S+ (\S+)$/m.exec(part) ?? [];
      const series = part.split('\n').filter((line) => line.startsWith(name));
      const found = series.flatMap((line) => [...line.matchAll(/[{,](\w+)="/g)].map(([, label = '']) => label));
      const labels =
        series.length > 0
          ? [...new Set(found)].filter((label) => label !== 'le')
          : (listed.find((one) => one.name === name)?.labels ?? []);
      return { name, help, type: type as MetricDeclaration['type'], labels };
    })
    .filter(({ name }) => !OF_PROCESS.test(name));
}

/** Returns `/metrics` of a service. */
export async function readMetrics(url: string): Promise<string> {
  return await (await fetch(`${url}/metrics`)).text();
}

/** A metric as one line, which a test compares. */
export function lineOf({ name, type, labels, help }: MetricDeclaration): string {
  return `${name} (${type}; ${[...labels].sort().join(', ')}): ${help}`;
}
