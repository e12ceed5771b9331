import { setTimeout as delay } from 'node:timers/promises';
import { findFreePorts } from '@sluice/local-stack/ports';
import { expect, test, vi } from 'vitest';
import { ownKafka } from '../support/engines.ts';
import { startIngestAlone } from '../support/ingest-alone.ts';
import { readMetric } from '../support/metrics.ts';

vi.setConfig({ testTimeout: 120_000 });

const MEBIBYTE = 1_024 * 1_024;
const BODY = JSON.stringify({
  foreignUserGroupId: 'a',
  events: [{ event: 'e', properties: { text: 'x'.repeat(20_000) } }],
});

/** Submits with 64 connections for so long, and gives how often each status came. */
async function submitFor(ms: number, submit: (body: string) => Promise<number>): Promise<Map<number, number>> {
  const statuses = new Map<number, number>();
  const deadline = performance.now() + ms;
  await Promise.all(
    Array.from({ length: 64 }, async () => {
      while (performance.now() < deadline) {
        const status = await submit(BODY);
        statuses.set(status, (statuses.get(status) ?? 0) + 1);
        if (status !== 202) await delay(20);
      }
    }),
  );
  return statuses;
}

test('while Kafka is away, from the start or later, memory does not grow with the requests that were given up', async () => {
  await using kafka = await ownKafka();
  await using ingest = await startIngestAlone({
    kafkaBrokers: kafka.brokers,
    name: 'lost',
    env: { PRODUCE_TIMEOUT_MS: '300', NODE_OPTIONS: '--max-old-space-size=128', BODY_BYTES_MAX: String(MEBIBYTE) },
  });
  expect(await ingest.submit(BODY)).toBe(202);
  await kafka.kill9();
  await submitFor(3_000, ingest.submit);
  const { now: before } = await ingest.memory();
  const statuses = await submitFor(15_000, ingest.submit);
  expect([...statuses.keys()]).toEqual([503]);
  expect(statuses.get(503)).toBeGreaterThan(1_000);
  const { now: after } = await ingest.memory();
  expect((after - before) / MEBIBYTE).toBeLessThan(60);
  expect(await readMetric(ingest.service, 'sluice_ingest_reserved_bytes')).toBe(0);
  await kafka.restart();
  await expect.poll(() => ingest.submit(BODY), { timeout: 60_000 }).toBe(202);
});

test('started without Kafka, requests are refused at once and hold nothing', async () => {
  const [port] = await findFreePorts(1);
  await using ingest = await startIngestAlone({ kafkaBrokers: [`127.0.0.1:${port}`], name: 'away', ready: false });
  await expect.poll(() => ingest.submit(BODY).catch(() => 0)).toBe(503);
  await submitFor(2_000, ingest.submit);
  const { now: before } = await ingest.memory();
  const statuses = await submitFor(8_000, ingest.submit);
  expect([...statuses.keys()]).toEqual([503]);
  expect(((await ingest.memory()).now - before) / MEBIBYTE).toBeLessThan(60);
});
