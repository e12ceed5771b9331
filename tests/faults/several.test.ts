import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { type LocalKafka, startKafka } from '@sluice/local-stack/kafka';
import { afterAll, afterEach, beforeAll, describe, expect, inject, test, vi } from 'vitest';
import { startLoad } from '../support/load.ts';
import { expectExactlyOnce } from '../support/oracle.ts';
import { type Pipeline, startPipeline } from '../support/pipeline.ts';
import type { Service } from '../support/service.ts';

// Each takes half a minute on an idle machine: rebalances wait for sessions to run out.
vi.setConfig({ testTimeout: 180_000 });

const clickhouseUrl = inject('clickhouseUrl');
let pipeline: Pipeline | undefined;

afterEach(async () => {
  await pipeline?.stop();
  pipeline = undefined;
});

async function start(name: string, kafkaBrokers = inject('kafkaBrokers'), env = {}): Promise<Pipeline> {
  pipeline = await startPipeline({ kafkaBrokers, clickhouseUrl, name, env });
  return pipeline;
}

/** How many partitions a writer was given each time it joined the group, as it has logged. */
function ownedPartitions(writer: Service): number[] {
  const lines = writer.log().split('\n').slice(0, -1);
  return lines
    .map((line) => JSON.parse(line) as { msg: string; assignment?: Record<string, number[]> })
    .filter(({ msg }) => msg === 'joined the consumer group')
    .map(({ assignment }) => Object.values(assignment ?? {}).flat().length);
}

const lastOwned = (writer: Service) => ownedPartitions(writer).at(-1) ?? 0;

test('a writer that is frozen past its session, and wakes up, stores nothing twice', async () => {
  // A writer that was frozen for twice as long ends when it wakes up.
  const running = await start('frozen', inject('kafkaBrokers'), { KAFKA_SESSION_TIMEOUT_MS: '10000' });
  const { writer } = running.services;
  await expect.poll(() => lastOwned(writer), { timeout: 30_000 }).toBeGreaterThan(0);
  const all = lastOwned(writer);
  const other = await running.startAnother('writer');
  const both = () => [lastOwned(writer), lastOwned(other)];
  await expect.poll(both, { message: 'each owns half', timeout: 30_000 }).toEqual([all / 2, all / 2]);
  await using load = startLoad({ pipeline: running, urls: () => [running.services['ingest-api'].url], concurrency: 8 });
  await expect.poll(load.acceptedSoFar, { timeout: 30_000 }).toBeGreaterThan(200);
  const before = ownedPartitions(writer).length;
  writer.freeze();
  await expect.poll(() => lastOwned(other), { message: 'the other owns all', timeout: 30_000 }).toBe(all);
  writer.thaw();
  await expect
    .poll(() => ownedPartitions(writer).length, { message: 'it joins again', timeout: 30_000 })
    .toBeGreaterThan(before);
  await expect.poll(both, { message: 'each owns half again', timeout: 30_000 }).toEqual([all / 2, all / 2]);
  const accepted = load.acceptedSoFar();
  await expect.poll(load.acceptedSoFar, { timeout: 30_000 }).toBeGreaterThan(accepted + 200);
  await expectExactlyOnce(running, clickhouseUrl, await load.stop());
});

test('a storm of rebalances, as writers come and are killed or stopped, loses and doubles nothing', async () => {
  const running = await start('storm');
  await using load = startLoad({ pipeline: running, urls: () => [running.services['ingest-api'].url], concurrency: 8 });
  for (let round = 0; round < 4; round += 1) {
    const another = await running.startAnother('writer');
    await delay(500);
    if (round % 2 === 0) await another.kill9();
    else await another.stop();
  }
  await expectExactlyOnce(running, clickhouseUrl, await load.stop());
});

describe('with three brokers, and every row on at least two', () => {
  let folder: string;
  let kafka: LocalKafka;

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'sluice-brokers-'));
    kafka = await startKafka({ dataDir: folder, brokers: 3 });
  });
  afterAll(async () => {
    await Promise.all([0, 1, 2].map((broker) => kafka?.kill9(broker)));
    await rm(folder, { recursive: true, force: true });
  });

  test('the loss of any one of them, one after the other, loses and doubles nothing, and ingest goes on', async () => {
    const running = await start('brokers', [...kafka.brokers], { KAFKA_REPLICATION_FACTOR: '3' });
    await using load = startLoad({
      pipeline: running,
      urls: () => [running.services['ingest-api'].url],
      concurrency: 8,
    });
    for (const broker of [0, 1, 2]) {
      await delay(1_000);
      await kafka.kill9(broker);
      const before = load.acceptedSoFar();
      await expect.poll(load.acceptedSoFar, { timeout: 30_000 }).toBeGreaterThan(before + 200);
      await kafka.restart(broker);
    }
    await expectExactlyOnce(running, clickhouseUrl, await load.stop());
  });
});
