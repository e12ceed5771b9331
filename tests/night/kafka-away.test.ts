import { setTimeout as delay } from 'node:timers/promises';
import { findFreePorts } from '@sluice/local-stack/ports';
import { eventually } from '@sluice/shared/testing/eventually';
import { expect, inject, test } from 'vitest';
import { ownKafka } from '../kit/engines.ts';
import { startIngestAlone } from '../kit/ingest-alone.ts';
import { startLoad } from '../kit/load.ts';
import { countResponses, readMetric } from '../kit/metrics.ts';
import { startPipeline } from '../kit/pipeline.ts';
import { expectExactlyOnce } from '../kit/verify-delivery.ts';

const MEBIBYTE = 1_024 * 1_024;
const BODY = JSON.stringify({
  foreignUserGroupId: 'a',
  events: [{ event: 'e', properties: { text: 'x'.repeat(50_000) } }],
});

/** If ingest-api held as many, they would take more than {@link GROWTH_BYTES_MAX}. */
const REFUSALS = 2_000;
const GROWTH_BYTES_MAX = 60 * MEBIBYTE;

/** Submits `count` times over 64 connections, and returns the number of responses by their status. */
async function submitMany(count: number, submit: (body: string) => Promise<number>): Promise<Map<number, number>> {
  const statuses = new Map<number, number>();
  let begun = 0;
  await Promise.all(
    Array.from({ length: 64 }, async () => {
      while (begun < count) {
        begun += 1;
        const status = await submit(BODY);
        statuses.set(status, (statuses.get(status) ?? 0) + 1);
        if (status !== 202) await delay(20);
      }
    }),
  );
  return statuses;
}

test('while Kafka is away, memory does not grow with the requests that were given up', async () => {
  await using kafka = await ownKafka();
  await using ingest = await startIngestAlone({
    kafkaBrokers: kafka.brokers,
    name: 'lost',
    env: { PRODUCE_TIMEOUT_MS: '200', NODE_OPTIONS: '--max-old-space-size=128', BODY_BYTES_MAX: String(MEBIBYTE) },
  });
  await eventually(() => ingest.submit(BODY)).toBe(202);
  await kafka.kill9();
  await submitMany(500, ingest.submit);
  const { now: before } = await ingest.memory();
  const statuses = await submitMany(REFUSALS, ingest.submit);
  expect(statuses).toEqual(new Map([[503, REFUSALS]]));
  const { now: after } = await ingest.memory();
  expect(after - before).toBeLessThan(GROWTH_BYTES_MAX);
  expect(await readMetric(ingest.service, 'sluice_ingest_reserved_bytes')).toBe(0);
  await kafka.restart();
  await eventually(() => ingest.submit(BODY)).toBe(202);
});

test('started without Kafka, requests are refused at once and hold nothing', async () => {
  const [port] = await findFreePorts(1);
  await using ingest = await startIngestAlone({ kafkaBrokers: [`127.0.0.1:${port}`], name: 'away', ready: false });
  await eventually(() => ingest.submit(BODY).catch(() => 0)).toBe(503);
  await submitMany(500, ingest.submit);
  const { now: before } = await ingest.memory();
  const statuses = await submitMany(REFUSALS, ingest.submit);
  expect(statuses).toEqual(new Map([[503, REFUSALS]]));
  expect((await ingest.memory()).now - before).toBeLessThan(GROWTH_BYTES_MAX);
});

test('the only broker is killed and started again, twice, under load: requests wait, nothing is lost or doubled', async () => {
  await using kafka = await ownKafka();
  const clickhouseUrl = inject('clickhouseUrl');
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
