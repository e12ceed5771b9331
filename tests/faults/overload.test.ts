import { randomUUIDv7 } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { expect, inject, test, vi } from 'vitest';
import { expectStoredOnce, submitUntilAccepted } from '../support/clients.ts';
import { countAnswers, readMetric } from '../support/metrics.ts';
import { startPipeline } from '../support/pipeline.ts';

vi.setConfig({ testTimeout: 300_000 });

const MEBIBYTE = 1_024 * 1_024;
const BUDGET_BYTES = 24 * MEBIBYTE;

/** Of 64 times 16 KiB, and a bit more. */
const SUBMISSION_EVENTS = 64;
const SUBMISSION_BYTES = MEBIBYTE;
/** Together they want many times as much as there is. */
const CLIENTS = (4 * BUDGET_BYTES) / SUBMISSION_BYTES;

test('overload at many times the capacity: 202 or 503, bounded memory, and as fast as before when it is over', async () => {
  const clickhouseUrl = inject('clickhouseUrl');
  const env = {
    PENDING_BYTES_MAX: String(BUDGET_BYTES),
    BODY_BYTES_MAX: String(1.5 * MEBIBYTE),
    // As in a container: with gigabytes to fill, Node collects garbage late.
    NODE_OPTIONS: '--max-old-space-size=256',
  };
  await using running = await startPipeline({
    kafkaBrokers: inject('kafkaBrokers'),
    clickhouseUrl,
    name: 'overload',
    env,
  });
  const ingest = running.services['ingest-api'];
  const options = { url: ingest.url, key: running.key };
  let total = 0;
  const submit = async (count: number, text: string) => {
    const events = Array.from({ length: count }, () => ({ event: 'e', uuid: randomUUIDv7(), properties: { text } }));
    await submitUntilAccepted({ foreignUserGroupId: 'g', events }, options);
    total += count;
  };
  const medianMs = async () => {
    const durations: number[] = [];
    for (let count = 0; count < 50; count += 1) {
      const startedAt = performance.now();
      await submit(1, 'small');
      durations.push(performance.now() - startedAt);
    }
    return durations.toSorted((a, b) => a - b)[25] ?? Number.NaN;
  };
  const residentBytes = () => readMetric(ingest, 'process_resident_memory_bytes');

  const before = { ms: await medianMs(), bytes: await residentBytes() };
  let over = false;
  const watch = async () => {
    let [mostBytes, longestMs] = [0, 0];
    while (!over) {
      const startedAt = performance.now();
      expect((await fetch(`${ingest.url}/livez`)).status).toBe(200);
      longestMs = Math.max(longestMs, performance.now() - startedAt);
      mostBytes = Math.max(mostBytes, await residentBytes());
      await delay(50);
    }
    return { mostBytes, longestMs };
  };
  const text = 'x'.repeat(SUBMISSION_BYTES / SUBMISSION_EVENTS);
  const submitTwice = async () => {
    await submit(SUBMISSION_EVENTS, text);
    await submit(SUBMISSION_EVENTS, text);
  };
  const submitting = Promise.all(Array.from({ length: CLIENTS }, submitTwice)).finally(() => {
    over = true;
  });
  const [{ mostBytes, longestMs }] = await Promise.all([watch(), submitting]);
  expect(await countAnswers(ingest, 503)).toBeGreaterThan(CLIENTS);
  expect(longestMs).toBeLessThan(5_000);
  // The heap itself may grow to 256 MiB; requests take no more than their budget beside it.
  expect(mostBytes - before.bytes).toBeLessThan(BUDGET_BYTES + 256 * MEBIBYTE);
  expect(await readMetric(ingest, 'sluice_ingest_reserved_bytes')).toBe(0);
  // Asked again and again, as whatever else the machine does is measured too.
  await expect.poll(medianMs, { timeout: 60_000 }).toBeLessThan(3 * before.ms + 20);
  await expectStoredOnce(running, clickhouseUrl, total);
});
