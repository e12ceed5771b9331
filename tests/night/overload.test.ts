import { randomUUIDv7 } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { eventually } from '@sluice/shared/testing/eventually';
import { expectInTime } from '@sluice/shared/testing/until';
import { expect, inject, test } from 'vitest';
import { expectStoredOnce, submitUntilAccepted } from '../kit/clients.ts';
import { countResponses, readMetric } from '../kit/metrics.ts';
import { startPipeline } from '../kit/pipeline.ts';

const MEBIBYTE = 1_024 * 1_024;
const BUDGET_BYTES = 24 * MEBIBYTE;

/** Events of 16 KiB each, so a little more than a mebibyte. */
const SUBMISSION_EVENTS = 64;
const SUBMISSION_BYTES = MEBIBYTE;
/** Each submits once; together they need many times the budget. */
const CLIENTS = (4 * BUDGET_BYTES) / SUBMISSION_BYTES;

test('overload at many times the capacity: 202 or 503, bounded memory, and as fast as before when it is over', async () => {
  const clickhouseUrl = inject('clickhouseUrl');
  const env = {
    PENDING_BYTES_MAX: String(BUDGET_BYTES),
    BODY_BYTES_MAX: String(1.5 * MEBIBYTE),
    // As in a container: with gigabytes to fill, Node.js collects garbage late.
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
  const submitLarge = () => submit(SUBMISSION_EVENTS, text);
  const submitting = Promise.all(Array.from({ length: CLIENTS }, submitLarge)).finally(() => {
    over = true;
  });
  const [{ mostBytes, longestMs }] = await Promise.all([watch(), submitting]);
  expect(await countResponses(ingest, 503)).toBeGreaterThan(CLIENTS);
  // A process that is blocked by the submissions of all clients would not respond until they are done.
  expectInTime('the longest response of /livez', longestMs, 15_000);
  // The heap itself may grow to 256 MiB; requests take no more than their budget beside it.
  expect(mostBytes - before.bytes).toBeLessThan(BUDGET_BYTES + 256 * MEBIBYTE);
  await eventually(() => readMetric(ingest, 'sluice_ingest_reserved_bytes')).toBe(0);
  // Measured until it is so: the machine may be busy with something else.
  await eventually(medianMs).toBeLessThan(3 * before.ms + 20);
  await expectStoredOnce(running, clickhouseUrl, total);
});
