import { randomBytes } from 'node:crypto';
import { expect, inject, test } from 'vitest';
import { listMetrics, type MetricDeclaration } from '../kit/metrics/metric-list.ts';
import { startPipeline } from '../kit/pipeline.ts';
import type { ServiceName } from '../kit/service.ts';

/** The metrics of the process and of Node.js, which prom-client adds. */
const OF_PROCESS = /^(process|nodejs)_/;

const listed = listMetrics();

/** Returns what `/metrics` of a service says of each metric. One without series has the labels that are listed. */
async function readExposed(url: string): Promise<MetricDeclaration[]> {
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

async function readMetrics(url: string): Promise<string> {
  return await (await fetch(`${url}/metrics`)).text();
}

function lineOf({ name, type, labels, help }: MetricDeclaration): string {
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
    const expected = listed.filter(({ services, isOfServers }) => services.includes(service) && !isOfServers);
    expect((await readExposed(url)).map(lineOf).sort()).toEqual(expected.map(lineOf).sort());
  }
});

test('with a file of servers query-api exposes what it knows of them, and all of a writer names its server', async () => {
  const url = inject('clickhouseUrl');
  const database = `test_metrics_${randomBytes(4).toString('hex')}`;
  await using running = await startPipeline({
    ...{ kafkaBrokers: inject('kafkaBrokers'), clickhouseUrl: url, name: 'metricsofservers' },
    servers: { a1: { url, database: `${database}_a1` }, a2: { url, database: `${database}_a2` } },
  });
  await running.submit({ foreignUserGroupId: 'g', events: [{ event: 'e' }] });
  await running.settled(1);
  expect((await running.get('/events', 'no key')).status).toBe(401);
  const ofQuery = listed.filter(({ services }) => services.includes('query-api'));
  const exposed = await readExposed(running.services['query-api'].url);
  expect(exposed.map(lineOf).sort()).toEqual(ofQuery.map(lineOf).sort());
  for (const [server, { url: writerUrl }] of Object.entries(running.writers)) {
    const series = (await readMetrics(writerUrl)).split('\n').filter((line) => line !== '' && !line.startsWith('#'));
    expect(series.filter((line) => !line.includes(`server="${server}"`))).toEqual([]);
  }
});
