import { expect, inject, test, vi } from 'vitest';
import { ownKafka } from '../support/engines.ts';
import { startLoad } from '../support/load.ts';
import { countAnswers } from '../support/metrics.ts';
import { expectExactlyOnce } from '../support/oracle.ts';
import { startPipeline } from '../support/pipeline.ts';

vi.setConfig({ testTimeout: 300_000 });

const clickhouseUrl = inject('clickhouseUrl');

test('the only broker is killed and started again, twice, under load: requests wait, nothing is lost or doubled', async () => {
  await using kafka = await ownKafka();
  // Longer than the broker takes to come back on a busy machine.
  const env = { PRODUCE_TIMEOUT_MS: '30000' };
  await using running = await startPipeline({ kafkaBrokers: kafka.brokers, clickhouseUrl, name: 'restarted', env });
  const ingest = running.services['ingest-api'];
  // It gives up, to be started anew, when it hears nothing of Kafka for two of its short sessions.
  running.supervise('writer');
  await using load = startLoad({ pipeline: running, urls: () => [ingest.url], concurrency: 16 });
  const goesOn = async () => {
    const before = load.acceptedSoFar();
    await expect.poll(load.acceptedSoFar, { timeout: 60_000 }).toBeGreaterThan(before + 500);
  };
  await goesOn();
  for (let round = 0; round < 2; round += 1) {
    await kafka.kill9();
    await kafka.restart();
    await goesOn();
  }
  await expectExactlyOnce(running, clickhouseUrl, await load.stop());
  expect(ingest.log()).toMatch(/sending to Kafka failed/);
  expect(await countAnswers(ingest, 503)).toBe(0);
});
