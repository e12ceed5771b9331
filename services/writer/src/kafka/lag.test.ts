import { randomUUID } from 'node:crypto';
import { loadConfig } from '@sluice/shared/config';
import { createKafka } from '@sluice/shared/kafka/client';
import { createTopics } from '@sluice/shared/kafka/testing/create-topics';
import { createLogger } from '@sluice/shared/log';
import { setClockBack } from '@sluice/shared/testing/clock';
import { eventually } from '@sluice/shared/testing/eventually';
import { expect, inject, onTestFinished, test } from 'vitest';
import { configSchema } from '../config.ts';
import { LagReader } from './lag.ts';

test('the lag grows with what comes, also when the clock was set back', async () => {
  const config = loadConfig(configSchema, {
    KAFKA_BROKERS: inject('kafkaBrokers').join(','),
    CLICKHOUSE_URL: 'http://127.0.0.1',
  });
  const kafka = createKafka(config, 'test', createLogger('test', 'silent'));
  const topic = `lag-${randomUUID()}`;
  await createTopics(kafka, [{ topic, numPartitions: 1 }]);
  const producer = kafka.producer();
  await producer.connect();
  onTestFinished(() => producer.disconnect());
  const lag = new LagReader({ kafka, groupId: `group-${topic}`, topics: [topic] });
  onTestFinished(() => lag.stop());
  const messages = async () => (await lag.read())?.map((partition) => partition.messages);
  expect(await messages()).toEqual([0]);
  await producer.send({ topic, messages: [{ value: 'a' }, { value: 'b' }] });
  setClockBack();
  await eventually(messages).toEqual([2]);
});
