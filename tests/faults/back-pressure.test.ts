import { eventually } from '@sluice/shared/testing/eventually';
import { until } from '@sluice/shared/testing/until';
import { expect, inject, test } from 'vitest';
import { readClickHouse } from '../kit/clickhouse.ts';
import { ownClickHouse } from '../kit/engines.ts';
import { startLoad } from '../kit/load.ts';
import { countResponses, readMetric } from '../kit/metrics.ts';
import { type Pipeline, startPipeline } from '../kit/pipeline.ts';
import { expectExactlyOnce } from '../kit/verify-delivery.ts';

const kafkaBrokers = inject('kafkaBrokers');

/** Under load, ClickHouse refuses the writer's statements for a while. Everything is stored once. */
async function whileRefusing(
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

test('too many parts: the writer waits until they are merged, nothing is lost or doubled', async () => {
  const clickhouseUrl = inject('clickhouseUrl');
  await using running = await startPipeline({ kafkaBrokers, clickhouseUrl, name: 'parts' });
  const table = `${running.database}.events`;
  await whileRefusing(running, clickhouseUrl, /Too many parts/, {
    async begin() {
      await readClickHouse(clickhouseUrl, `SYSTEM STOP MERGES ${table}`);
      await readClickHouse(clickhouseUrl, `ALTER TABLE ${table} MODIFY SETTING parts_to_throw_insert = 3`);
    },
    async cease() {
      await readClickHouse(clickhouseUrl, `ALTER TABLE ${table} RESET SETTING parts_to_throw_insert`);
      await readClickHouse(clickhouseUrl, `SYSTEM START MERGES ${table}`);
    },
  });
});

test('no memory left: the writer waits until there is some, nothing is lost or doubled', async () => {
  await using clickhouse = await ownClickHouse({ memoryBytesMax: 1.5 * 1_024 ** 3 });
  const { url } = clickhouse;
  await using running = await startPipeline({ kafkaBrokers, clickhouseUrl: url, name: 'memory' });
  await readClickHouse(url, 'CREATE TABLE hog (text String) ENGINE = Memory');
  await whileRefusing(running, url, /memory limit exceeded/i, {
    async begin() {
      for (const mebibytes of [64, 8, 1]) {
        const sql = `INSERT INTO hog SELECT randomString(1048576) FROM numbers(${mebibytes}) SETTINGS max_block_size = 1`;
        for (let taken = true; taken; ) {
          const response = await fetch(url, { method: 'POST', body: sql });
          taken = response.ok;
          if (!taken) expect(await response.text()).toMatch(/MEMORY_LIMIT_EXCEEDED/);
        }
      }
    },
    // A statement that drops the table needs memory too, and there is none. What it held is gone after a start.
    cease: () => clickhouse.restart(),
  });
});
