import { expect, inject, test } from 'vitest';
import { startPipeline } from '../support/pipeline.ts';
import type { ServiceName } from '../support/service.ts';
import { listMetrics, type MetricDescription } from './metric-list.ts';

/** The metrics of the process and of Node.js, which prom-client adds. */
const OF_PROCESS = /^(process|nodejs)_/;

const listed = listMetrics();

type Declared = Omit<MetricDescription, 'services'>;

/** Returns what `/metrics` of a service says of each metric. One without series has the labels that are listed. */
async function readExposed(url: string): Promise<Declared[]> {
  const text = await (await fetch(`${url}/metrics`)).text();
  return text
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
      return { name, help, type: type as Declared['type'], labels };
    })
    .filter(({ name }) => !OF_PROCESS.test(name));
}

function lineOf({ name, type, labels, help }: Declared): string {
  return `${name} (${type}; ${[...labels].sort().join(', ')}): ${help}`;
}

test('the services expose exactly the metrics that are listed', async () => {
  await using running = await startPipeline({
    kafkaBrokers: inject('kafkaBrokers'),
    clickhouseUrl: inject('clickhouseUrl'),
    name: 'metrics',
  });
  await running.submit({ foreignUserGroupId: 'g', events: [{ event: 'e' }] });
  await running.settled(1);
  expect((await running.get('/events', 'no key')).status).toBe(401);
  for (const [service, { url }] of Object.entries(running.services) as [ServiceName, { url: string }][]) {
    const expected = listed.filter(({ services }) => services.includes(service));
    expect((await readExposed(url)).map(lineOf).sort()).toEqual(expected.map(lineOf).sort());
  }
});
