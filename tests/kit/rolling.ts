import { until } from '@sluice/shared/testing/until';
import { expect } from 'vitest';
import { startLoad } from './load.ts';
import { startPipeline } from './pipeline.ts';
import { type FailedRead, startReaders, untilBothGoOn } from './readers.ts';
import type { Service, ServiceName } from './service.ts';
import { expectExactlyOnce } from './verify-delivery.ts';

export interface RollingOptions {
  readonly kafkaBrokers: readonly string[];
  readonly clickhouseUrl: string;
  /** The name of the pipeline. */
  readonly name: string;
  /** Which of the two processes of each service are restarted, one after the other. */
  readonly restarted: readonly (0 | 1)[];
}

/** Restarts processes of every service under load: every failure allows a retry, and everything is stored once. */
export async function restartUnderLoad(options: RollingOptions): Promise<void> {
  const { clickhouseUrl } = options;
  await using running = await startPipeline(options);
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
    for (const index of options.restarted) {
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
}
