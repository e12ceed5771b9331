import { until } from '@sluice/shared/testing/until';
import { expect, inject, test } from 'vitest';
import { startLoad } from '../kit/load.ts';
import { startPipeline } from '../kit/pipeline.ts';
import { type FailedRead, startReaders, untilBothGoOn } from '../kit/readers.ts';
import type { Service, ServiceName } from '../kit/service.ts';
import { expectExactlyOnce } from '../kit/verify-delivery.ts';

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

  await using load = startLoad({ pipeline: running, urls: () => ingests.map(({ url }) => url), concurrency: 4 });
  const paths = ['/events?limit=20', '/events?event=load&limit=5&total=none', '/users/u0', '/organizations/g'];
  await using readers = startReaders({ pipeline: running, urls: () => queries.map(({ url }) => url), paths });

  for (const instances of [ingests, writers, queries]) {
    for (const index of [0, 1] as const) {
      await untilBothGoOn(load, readers, { accepted: 40, answered: 6 });
      const before = readers.failedSoFar();
      expect(await instances[index].stop()).toBe(0);
      if (instances === queries)
        await until('a query to meet a service that is stopped', async () => readers.failedSoFar() > before);
      instances[index] = await running.replace(instances[index]);
    }
  }
  const failed = await readers.stop();
  await expectExactlyOnce(running, clickhouseUrl, await load.stop());
  const mayRetry = ({ status }: FailedRead) => status === undefined || status === 503;
  expect(failed.filter((one) => !mayRetry(one))).toEqual([]);
});
