import { join } from 'node:path';
import { makeTempDir } from '@sluice/local-stack/testing/temp-dir';
import { eventually } from '@sluice/shared/testing/eventually';
import { until } from '@sluice/shared/testing/until';
import { expect, inject, test } from 'vitest';
import { ownClickHouse, ownKafka } from '../kit/engines.ts';
import { startLoad } from '../kit/load.ts';
import { countResponses, readMetric } from '../kit/metrics.ts';
import { startPipeline } from '../kit/pipeline.ts';
import { mountSmallDisk } from '../kit/small-disk.ts';
import { expectExactlyOnce } from '../kit/verify-delivery.ts';

test('the disk of ClickHouse is full: the writer waits, and stores everything once there is space', async () => {
  await using folder = await makeTempDir();
  const dataDir = join(folder.path, 'clickhouse');
  await using disk = await mountSmallDisk(dataDir, 256);
  await using clickhouse = await ownClickHouse({ dataDir, logDir: folder.path, wrap: disk.enter });
  const kafkaBrokers = inject('kafkaBrokers');
  await using running = await startPipeline({ kafkaBrokers, clickhouseUrl: clickhouse.url, name: 'fullclickhouse' });
  const { writer, 'ingest-api': ingest } = running.services;
  await using load = startLoad({ pipeline: running, urls: () => [ingest.url], concurrency: 2 });
  await eventually(load.acceptedSoFar).toBeGreaterThan(100);

  // No insert starts when less than 64 MiB are left. Those that run have space: the local engine, unlike the server,
  // does not notice a write that fails.
  await disk.fill(40 * 1_024 * 1_024);
  await until('batches that cannot be stored', async () => {
    return (await readMetric(writer, 'sluice_writer_batch_failures_total')) >= 3;
  });
  const before = load.acceptedSoFar();
  await eventually(load.acceptedSoFar).toBeGreaterThan(before + 100);
  expect(await readMetric(writer, 'sluice_writer_dead_letters_total')).toBe(0);

  await disk.free();
  await expectExactlyOnce(running, clickhouse.url, await load.stop());
  await writer.ready();
  expect(await readMetric(writer, 'sluice_writer_dead_letters_total')).toBe(0);
  expect(await countResponses(ingest, 503)).toBe(0);
});

test('the disk of Kafka is full: 503, and once the broker runs again everything that was accepted is stored once', async () => {
  await using folder = await makeTempDir();
  await using disk = await mountSmallDisk(join(folder.path, 'kafka'), 64);
  await using kafka = await ownKafka({ dataDir: disk.path, logDir: folder.path });
  const clickhouseUrl = inject('clickhouseUrl');
  const env = { PRODUCE_TIMEOUT_MS: '3000' };
  await using running = await startPipeline({ kafkaBrokers: kafka.brokers, clickhouseUrl, name: 'fullkafka', env });
  running.supervise('writer');
  const ingest = running.services['ingest-api'];
  await using load = startLoad({ pipeline: running, urls: () => [ingest.url], concurrency: 4 });
  await eventually(load.acceptedSoFar).toBeGreaterThan(100);

  await disk.fill();
  // A broker whose only log folder fails ends itself.
  const { code } = await kafka.exited();
  expect(code).toBe(1);
  const refused = await running.submit({ foreignUserGroupId: 'g', events: [{ event: 'while full' }] });
  expect(refused.status).toBe(503);
  expect(refused.headers.get('retry-after')).toMatch(/^\d+$/);
  await until('503 for the load', async () => (await countResponses(ingest, 503)) > 8);

  await disk.free();
  await kafka.restart();
  const before = load.acceptedSoFar();
  await eventually(load.acceptedSoFar).toBeGreaterThan(before + 100);
  await expectExactlyOnce(running, clickhouseUrl, await load.stop());
});
