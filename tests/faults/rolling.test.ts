import { setTimeout as delay } from 'node:timers/promises';
import { eventually } from '@sluice/shared/testing/eventually';
import { expect, inject, test } from 'vitest';
import { startLoad } from '../support/load.ts';
import { startPipeline } from '../support/pipeline.ts';
import type { Service, ServiceName } from '../support/service.ts';
import { expectExactlyOnce } from '../support/verify-delivery.ts';

const clickhouseUrl = inject('clickhouseUrl');

test('every service is restarted, one process after the other, under load: every failure allows a retry', async () => {
  await using running = await startPipeline({ kafkaBrokers: inject('kafkaBrokers'), clickhouseUrl, name: 'everyone' });
  const startTwo = async (name: ServiceName): Promise<[Service, Service]> => [
    running.services[name],
    await running.startAnother(name),
  ];
  const [ingests, writers, queries] = await Promise.all([
    startTwo('ingest-api'),
    startTwo('writer'),
    startTwo('query-api'),
  ]);
  await running.submit({ foreignUserGroupId: 'g', foreignUserId: 'u0', events: [{ event: 'first' }] });
  await running.settled(1);

  await using load = startLoad({ pipeline: running, urls: () => ingests.map(({ url }) => url), concurrency: 8 });
  let querying = true;
  let [answered, retried] = [0, 0];
  const unexpected: string[] = [];
  const headers = { authorization: `Bearer ${running.key}` };
  const query = async (path: string) => {
    for (let turn = 0; querying; turn += 1) {
      const response = await fetch(`${queries[turn % 2]?.url}${path}`, { headers }).catch(() => undefined);
      const text = await response?.text().catch(() => undefined);
      if (response?.status === 200 && text !== undefined) answered += 1;
      else if (!response || text === undefined || response.status === 503) retried += 1;
      else unexpected.push(`${path}: ${response.status} ${text}`);
      await delay(20);
    }
  };
  const paths = ['/events?limit=20', '/events?event=load&limit=5&total=none', '/users/u0', '/organizations/g'];
  await using reading = new AsyncDisposableStack();
  const ended = Promise.all(paths.map(query));
  reading.defer(async () => {
    querying = false;
    await ended;
  });

  for (const instances of [ingests, writers, queries]) {
    for (const index of [0, 1] as const) {
      const before = { accepted: load.acceptedSoFar(), answered };
      await eventually(load.acceptedSoFar).toBeGreaterThan(before.accepted + 200);
      await eventually(() => answered).toBeGreaterThan(before.answered + 20);
      expect(await instances[index].stop()).toBe(0);
      instances[index] = await running.replace(instances[index]);
    }
  }
  await reading.disposeAsync();
  await expectExactlyOnce(running, clickhouseUrl, await load.stop());
  expect(unexpected).toEqual([]);
  expect(retried, 'some queries met a service that was stopped').toBeGreaterThan(0);
});
