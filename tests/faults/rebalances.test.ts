import { setTimeout as delay } from 'node:timers/promises';
import { eventually } from '@sluice/shared/testing/eventually';
import { inject, test } from 'vitest';
import { startLoad } from '../support/load.ts';
import { startPipeline } from '../support/pipeline.ts';
import type { Service } from '../support/service.ts';
import { expectExactlyOnce } from '../support/verify-delivery.ts';

const [kafkaBrokers, clickhouseUrl] = [inject('kafkaBrokers'), inject('clickhouseUrl')];

/** The number of partitions that the group assigned to a writer, each time it joined, from its log. */
function ownedPartitions(writer: Service): number[] {
  const lines = writer.log().split('\n').slice(0, -1);
  return lines
    .map((line) => JSON.parse(line) as { msg: string; assignment?: Record<string, number[]> })
    .filter(({ msg }) => msg === 'joined the consumer group')
    .map(({ assignment }) => Object.values(assignment ?? {}).flat().length);
}

const lastOwned = (writer: Service) => ownedPartitions(writer).at(-1) ?? 0;

test('a writer that is frozen past its session, and then goes on, stores nothing twice', async () => {
  // A writer that was frozen for twice as long ends itself when it goes on.
  const env = { KAFKA_SESSION_TIMEOUT_MS: '10000' };
  await using running = await startPipeline({ kafkaBrokers, clickhouseUrl, name: 'frozen', env });
  const { writer } = running.services;
  await eventually(() => lastOwned(writer)).toBeGreaterThan(0);
  const all = lastOwned(writer);
  const other = await running.startAnother('writer');
  const both = () => [lastOwned(writer), lastOwned(other)];
  await eventually(both, { message: 'each owns half' }).toEqual([all / 2, all / 2]);
  await using load = startLoad({ pipeline: running, urls: () => [running.services['ingest-api'].url], concurrency: 8 });
  await eventually(load.acceptedSoFar).toBeGreaterThan(200);
  const before = ownedPartitions(writer).length;
  writer.freeze();
  await eventually(() => lastOwned(other), { message: 'the other owns all' }).toBe(all);
  writer.thaw();
  await eventually(() => ownedPartitions(writer).length, { message: 'it joins again' }).toBeGreaterThan(before);
  await eventually(both, { message: 'each owns half again' }).toEqual([all / 2, all / 2]);
  const accepted = load.acceptedSoFar();
  await eventually(load.acceptedSoFar).toBeGreaterThan(accepted + 200);
  await expectExactlyOnce(running, clickhouseUrl, await load.stop());
});

test('a storm of rebalances, as writers come and are killed or stopped, loses and doubles nothing', async () => {
  await using running = await startPipeline({ kafkaBrokers, clickhouseUrl, name: 'storm' });
  await using load = startLoad({ pipeline: running, urls: () => [running.services['ingest-api'].url], concurrency: 8 });
  for (let round = 0; round < 4; round += 1) {
    const another = await running.startAnother('writer');
    await delay(500);
    if (round % 2 === 0) await another.kill9();
    else await another.stop();
  }
  await expectExactlyOnce(running, clickhouseUrl, await load.stop());
});
