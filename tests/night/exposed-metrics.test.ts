import { randomBytes } from 'node:crypto';
import { expect, inject, test } from 'vitest';
import { lineOf, listed, readExposed, readMetrics } from '../kit/metrics/exposed-metrics.ts';
import { startPipeline } from '../kit/pipeline.ts';

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
