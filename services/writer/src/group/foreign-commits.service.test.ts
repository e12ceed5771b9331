import { randomUUID } from 'node:crypto';
import { createLogger } from '@sluice/shared/base/log';
import { loadConfig } from '@sluice/shared/config';
import { createKafka } from '@sluice/shared/kafka/client';
import { createTopics } from '@sluice/shared/kafka/testing/create-topics';
import type { Consumer } from 'kafkajs';
import { expect, inject, onTestFinished, test } from 'vitest';
import { configSchema } from '../config.ts';
import { ForeignCommits } from './foreign-commits.ts';

const config = loadConfig(configSchema, {
  KAFKA_BROKERS: inject('kafkaBrokers').join(','),
  CLICKHOUSE_URL: 'http://127.0.0.1',
});
const kafka = createKafka(config, 'test', createLogger('test', 'silent'));

/** Joins a new group as its only member. */
async function joinGroup(topic: string): Promise<{ consumer: Consumer; groupId: string }> {
  const groupId = randomUUID();
  const consumer = kafka.consumer({ groupId, allowAutoTopicCreation: false });
  const joined = new Promise((resolve) => consumer.on(consumer.events.GROUP_JOIN, resolve));
  await consumer.connect();
  onTestFinished(() => consumer.disconnect());
  await consumer.subscribe({ topics: [topic] });
  await consumer.run({ autoCommit: false, eachBatch: async () => undefined });
  await joined;
  return { consumer, groupId };
}

test('offsets that grow with the id of another database are noticed, and no others', async () => {
  const topic = `foreign-${randomUUID()}`;
  await createTopics(kafka, [{ topic, numPartitions: 2 }]);
  const { consumer, groupId } = await joinGroup(topic);
  const commit = (partition: number, offset: string, metadata?: string) =>
    consumer.commitOffsets([{ topic, partition, offset, ...(metadata !== undefined && { metadata }) }]);
  const commits = new ForeignCommits({ kafka, groupId, topics: [topic], isOwn: (id) => id === 'own' });

  const foreign = async () => (await commits.look([])).foreign;
  expect(await foreign()).toBeUndefined();
  // An older version, this database, and one that was lost.
  await commit(0, '3');
  await commit(1, '5', 'lost');
  expect(await foreign()).toBeUndefined();
  await commit(0, '4', 'own');
  await commit(1, '5', 'lost');
  expect(await foreign()).toBeUndefined();
  await commit(1, '6', 'another');
  expect(await foreign()).toBe('another');
  await commit(1, '7', 'own');
  expect(await foreign()).toBeUndefined();
});

test('an offset that was committed with metadata and comes back without shows that Kafka loses it', async () => {
  const topic = `metadata-${randomUUID()}`;
  await createTopics(kafka, [{ topic, numPartitions: 2 }]);
  const { consumer, groupId } = await joinGroup(topic);
  const commits = new ForeignCommits({ kafka, groupId, topics: [topic], isOwn: (id) => id === 'own' });
  const own = { topic, partition: 0, offset: '3', metadata: 'own' };
  const loses = async () => (await commits.look([own])).losesMetadata;
  await consumer.commitOffsets([own]);
  expect(await loses()).toBe(false);
  // As such a broker has it.
  await consumer.commitOffsets([{ topic, partition: 0, offset: '3' }]);
  expect(await loses()).toBe(true);
  // One of a later writer, of an older version.
  await consumer.commitOffsets([{ topic, partition: 0, offset: '4' }]);
  expect(await loses()).toBe(false);
});
