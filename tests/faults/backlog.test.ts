import { eventually } from '@sluice/shared/testing/eventually';
import { until } from '@sluice/shared/testing/until';
import { expect, inject, test } from 'vitest';
import { ownClickHouse } from '../kit/engines.ts';
import { readMetric } from '../kit/metrics.ts';
import { startPipeline } from '../kit/pipeline.ts';

const kafkaBrokers = inject('kafkaBrokers');

test('the lag is right while ClickHouse is away, in messages and in seconds, and 0 once everything is stored', async () => {
  const MESSAGES = 60;
  await using clickhouse = await ownClickHouse();
  await using running = await startPipeline({ kafkaBrokers, clickhouseUrl: clickhouse.url, name: 'lag' });
  const { writer } = running.services;
  const submit = () => running.submit({ foreignUserGroupId: 'g', events: [{ event: 'e' }] });
  await submit();
  await running.drained();
  await clickhouse.kill9();
  const before = Date.now();
  // One after the other, so that each is a message of its own.
  for (let count = 0; count < MESSAGES; count += 1) expect((await submit()).status).toBe(202);
  const oldest = async () => {
    const text = await (await fetch(`${writer.url}/metrics`)).text();
    return Math.max(
      ...[...text.matchAll(/^sluice_writer_lag_seconds\{.*\} (\S+)$/gm)].map(([, value]) => Number(value)),
    );
  };
  const lag = await until('the oldest message to be two seconds old', async () => {
    const seconds = await oldest();
    return seconds > 2 ? seconds : undefined;
  });
  expect(lag).toBeLessThan((Date.now() - before) / 1_000 + 1);
  // What the writer says of it may be older than the last message.
  await eventually(() => readMetric(writer, 'sluice_writer_lag_messages', { topic: 'lag.events' })).toBe(MESSAGES);
  await clickhouse.restart();
  await running.drained();
  await eventually(() => readMetric(writer, 'sluice_writer_lag_messages')).toBe(0);
  await eventually(oldest).toBe(0);
});
