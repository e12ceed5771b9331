import { eventually } from '@sluice/shared/testing/eventually';
import { until } from '@sluice/shared/testing/until';
import { expect } from 'vitest';
import { startLoad } from './load.ts';
import { countResponses, readMetric } from './metrics.ts';
import type { Pipeline } from './pipeline.ts';
import { expectExactlyOnce } from './verify-delivery.ts';

/** Under load, ClickHouse refuses the writer's statements for a while. Everything is stored once. */
export async function whileRefusing(
  running: Pipeline,
  clickhouseUrl: string,
  reason: RegExp,
  refuse: { readonly begin: () => Promise<void>; readonly cease: () => Promise<void> },
): Promise<void> {
  const { writer, 'ingest-api': ingest } = running.services;
  await using load = startLoad({ pipeline: running, urls: () => [ingest.url], concurrency: 4 });
  await eventually(load.acceptedSoFar).toBeGreaterThan(100);
  await refuse.begin();
  await until('batches that are refused', async () => {
    return (await readMetric(writer, 'sluice_writer_batch_failures_total')) >= 3;
  });
  expect(writer.log()).toMatch(reason);
  const before = load.acceptedSoFar();
  await eventually(load.acceptedSoFar).toBeGreaterThan(before + 100);

  await refuse.cease();
  await expectExactlyOnce(running, clickhouseUrl, await load.stop());
  // Fails if the process has ended.
  await writer.ready();
  expect(await readMetric(writer, 'sluice_writer_dead_letters_total')).toBe(0);
  expect(await countResponses(ingest, 503)).toBe(0);
}
