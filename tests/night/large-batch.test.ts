import { expect, inject, test } from 'vitest';
import { readMetric } from '../kit/metrics.ts';
import { startPipeline } from '../kit/pipeline.ts';

/** Enough for some thousands of rows, not for tens of thousands. */
const STATEMENT_MEMORY_BYTES = 40 * 1_024 ** 2;

test('a batch that is too large for ClickHouse is cut until it fits: the backlog drains', async () => {
  const kafkaBrokers = inject('kafkaBrokers');
  // The client takes settings from its address.
  const clickhouseUrl = `${inject('clickhouseUrl')}/?clickhouse_setting_max_memory_usage=${STATEMENT_MEMORY_BYTES}`;
  await using running = await startPipeline({ kafkaBrokers, clickhouseUrl, name: 'large' });
  expect(await running.services.writer.stop()).toBe(0);
  const properties = { text: 'x'.repeat(200) };
  for (let sent = 0; sent < 90_000; sent += 1_000) {
    const events = Array(1_000).fill({ event: 'e', properties });
    expect((await running.submit({ foreignUserGroupId: 'g', events })).status).toBe(202);
  }
  await running.restart('writer');
  const { writer } = running.services;
  await running.drained();
  expect(writer.log()).toMatch(/memory limit exceeded/i);
  console.log(`${await readMetric(writer, 'sluice_writer_batch_failures_total')} batches failed`);
  await running.settled(90_000);
});
