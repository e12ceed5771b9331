import { readFile } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { EXPORT, startExports } from '../kit/exports.ts';
import type { Service } from '../kit/service.ts';

/** Some 115 MB. */
const EVENTS = 100_000;

/** What query-api may need for an export besides what it needs anyway, in bytes: less than two thirds of what passes through it. */
const EXPORT_MEMORY_BYTES_MAX = 70 * 1_024 * 1_024;

async function residentBytes({ pid }: Service): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  return 1_024 * Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1]);
}

test('an export needs little memory, whether its client is fast or reads nothing', async () => {
  await using exports = await startExports(EVENTS);
  const { api } = exports;
  await (await fetch(`${api.url}${EXPORT}&endDate=2026-03-01T00:10:00Z`)).text();
  const before = await residentBytes(api);
  let highest = 0;
  let bytes = 0;
  const fast = await fetch(api.url + EXPORT);
  for await (const chunk of fast.body as ReadableStream<Uint8Array>) {
    if (Math.floor(bytes / 5_000_000) !== Math.floor((bytes + chunk.length) / 5_000_000)) {
      highest = Math.max(highest, await residentBytes(api));
    }
    bytes += chunk.length;
  }
  expect(bytes).toBeGreaterThan(EVENTS * 1_000);
  expect(highest - before).toBeLessThan(EXPORT_MEMORY_BYTES_MAX);

  const controller = new AbortController();
  const slow = await fetch(api.url + EXPORT, { signal: controller.signal });
  await (slow.body as ReadableStream<Uint8Array>).getReader().read();
  // Longer than the buffers of the system take to fill.
  await delay(5_000);
  expect((await residentBytes(api)) - before).toBeLessThan(EXPORT_MEMORY_BYTES_MAX);
  controller.abort();
});
