import { randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { createLogger } from '@sluice/shared/base/log';
import { loadConfig } from '@sluice/shared/config';
import { createKafka } from '@sluice/shared/kafka/client';
import { messageHeaders } from '@sluice/shared/rows';
import { configSchema } from '@sluice/writer/config';
import kafkajs from 'kafkajs';
import { expect, inject, test } from 'vitest';
import { startPipeline } from '../kit/pipeline.ts';

const kafkaBrokers = inject('kafkaBrokers');

test('compressed messages of half a gigabyte do not make the writer take much memory', async () => {
  await using running = await startPipeline({
    kafkaBrokers,
    clickhouseUrl: inject('clickhouseUrl'),
    name: 'compressed',
  });
  const { writer } = running.services;
  expect(await writer.stop()).toBe(0);
  const config = loadConfig(configSchema, {
    KAFKA_BROKERS: kafkaBrokers.join(','),
    CLICKHOUSE_URL: 'http://127.0.0.1',
  });
  const producer = createKafka(config, 'test', createLogger('test', 'silent')).producer({
    allowAutoTopicCreation: false,
  });
  await producer.connect();
  const properties = { text: 'compressible '.repeat(400) };
  const [messages, rows] = [570, 170];
  let bytes = 0;
  for (let index = 0; index < messages; index += 1) {
    const now = Date.now();
    // Only the UUID differs: serialising half a gigabyte row by row would take most of the test's time.
    const row = { workspace_id: 'test', timestamp: now, uuid: '*', event: 'e', properties, received_at: now * 1_000 };
    const [before, after] = JSON.stringify(row).split('*');
    const value = Array.from({ length: rows }, () => `${before}${randomUUID()}${after}\n`).join('');
    bytes += value.length;
    const compression = kafkajs.CompressionTypes.ZSTD;
    const message = { value, headers: messageHeaders('events'), partition: index % 6 };
    await producer.send({ topic: 'compressed.events', acks: -1, compression, messages: [message] });
  }
  await producer.disconnect();
  expect(bytes).toBeGreaterThan(480 * 1_024 ** 2);
  await running.restart('writer');
  const { pid } = running.services.writer;
  await running.drained();
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  const peak = Number(/VmHWM:\s+(\d+) kB/.exec(status)?.[1]) / 1_024;
  console.log(`${Math.round(bytes / 1_024 ** 2)} MiB of rows: the writer took ${Math.round(peak)} MiB at most`);
  expect(peak).toBeLessThan(400);
  await running.settled(messages * rows);
});
