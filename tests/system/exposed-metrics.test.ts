import { expect, inject, test } from 'vitest';
import { lineOf, listed, readExposed } from '../kit/metrics/exposed-metrics.ts';
import { startPipeline } from '../kit/pipeline.ts';
import type { ServiceName } from '../kit/service.ts';

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
