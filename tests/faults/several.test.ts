import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { type LocalKafka, startKafka } from '@sluice/local-stack/kafka';
import { afterAll, afterEach, beforeAll, describe, expect, inject, test, vi } from 'vitest';
import { startLoad } from '../support/load.ts';
import { expectExactlyOnce } from '../support/oracle.ts';
import { type Pipeline, startPipeline } from '../support/pipeline.ts';

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

test('a writer that is frozen past its session, and wakes up, stores nothing twice', async () => {
  const running = await start('frozen');
  await running.startAnother('writer');
  await using load = startLoad({ pipeline: running, urls: () => [running.services['ingest-api'].url], concurrency: 8 });
  await delay(1_000);
  running.services.writer.freeze();
  await delay(8_000);
  running.services.writer.thaw();
  await delay(4_000);
  await expectExactlyOnce(running, clickhouseUrl, await load.stop());
});

test('a storm of rebalances, with a writer killed in each, loses and doubles nothing', async () => {
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
