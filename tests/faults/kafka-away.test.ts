import type { LocalKafka } from '@sluice/local-stack/kafka';
import { eventually } from '@sluice/shared/testing/eventually';
import { afterAll, afterEach, beforeAll, expect, inject, test } from 'vitest';
import { ownKafka } from '../kit/engines.ts';
import { stopWhileFrozen } from '../kit/frozen-kafka.ts';
import { startLoad } from '../kit/load.ts';
import { countResponses } from '../kit/metrics.ts';
import { startPipeline } from '../kit/pipeline.ts';
import { expectExactlyOnce } from '../kit/verify-delivery.ts';

const clickhouseUrl = inject('clickhouseUrl');
let kafka: LocalKafka & AsyncDisposable;

beforeAll(async () => {
  kafka = await ownKafka();
});
afterEach(async () => {
  // A test that fails may leave the broker down.
  if (kafka.pids[0] === undefined) await kafka.restart();
});
afterAll(() => kafka?.[Symbol.asyncDispose]());

test('the only broker is killed and started again, twice, under load: requests wait, nothing is lost or doubled', async () => {
  // Longer than the broker takes to come back on a busy machine.
  const env = { PRODUCE_TIMEOUT_MS: '60000' };
  await using running = await startPipeline({ kafkaBrokers: kafka.brokers, clickhouseUrl, name: 'restarted', env });
  const ingest = running.services['ingest-api'];
  // The writer ends itself when Kafka is silent for two of its short sessions.
  running.supervise('writer');
  await using load = startLoad({ pipeline: running, urls: () => [ingest.url], concurrency: 6 });
  const goesOn = async () => {
    const before = load.acceptedSoFar();
    await eventually(load.acceptedSoFar).toBeGreaterThan(before + 100);
  };
  await goesOn();
  for (let round = 0; round < 2; round += 1) {
    await kafka.kill9();
    await kafka.restart();
    await goesOn();
  }
  await expectExactlyOnce(running, clickhouseUrl, await load.stop());
  expect(ingest.log()).toMatch(/sending to Kafka failed/);
  expect(await countResponses(ingest, 503)).toBe(0);
});

test('services stop while Kafka is frozen, and events are accepted again once it responds', async () => {
  await stopWhileFrozen({ kafka, clickhouseUrl, name: 'frozen', frozenMs: 0 });
});
