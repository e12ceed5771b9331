import { randomUUID } from 'node:crypto';
import { createLogger } from '@sluice/shared/base/log';
import { loadConfig } from '@sluice/shared/config';
import { createKafka } from '@sluice/shared/kafka/client';
import { ensureTopics, topicNames } from '@sluice/shared/kafka/topics';
import { expect, inject, test } from 'vitest';
import { configSchema } from '../config.ts';
import { isMemberOf } from './group-consumer.ts';

test('a consumer is a member of its group until it leaves, and of no other group', async () => {
  const config = loadConfig(configSchema, {
    KAFKA_BROKERS: inject('kafkaBrokers').join(','),
    KAFKA_TOPIC_PREFIX: 'membership.',
    CLICKHOUSE_URL: 'http://127.0.0.1',
  });
  const kafka = createKafka(config, 'test', createLogger('test', 'silent'));
  await ensureTopics(kafka, config);
  const [groupId, otherGroupId] = [randomUUID(), randomUUID()];
  const consumer = kafka.consumer({ groupId, allowAutoTopicCreation: false });
  const joined = new Promise<string>((resolve) => {
    consumer.on(consumer.events.GROUP_JOIN, ({ payload }) => resolve(payload.memberId));
  });
  await consumer.connect();
  await consumer.subscribe({ topics: [topicNames(config).events] });
  await consumer.run({ eachBatch: async () => undefined });
  const memberId = await joined;
  expect(await isMemberOf(kafka, groupId, memberId)).toBe(true);
  expect(await isMemberOf(kafka, groupId, 'another')).toBe(false);
  expect(await isMemberOf(kafka, otherGroupId, memberId)).toBe(false);
  await consumer.disconnect();
  expect(await isMemberOf(kafka, groupId, memberId)).toBe(false);
});
