import { randomUUID } from 'node:crypto';
import { createLogger } from '@sluice/shared/base/log';
import { createKafka } from '@sluice/shared/kafka/client';
import { createTopics } from '@sluice/shared/kafka/testing/create-topics';
import { withAdmin } from '@sluice/shared/kafka/topics';
import { eventually } from '@sluice/shared/testing/eventually';
import { expect, inject, test } from 'vitest';
import { TopicPartition } from './topic-partition.ts';
import { TopicWatch } from './topic-watch.ts';

test('a topic with too few partitions keeps its problem while it cannot be read, though others can', async () => {
  const logger = createLogger('test', 'silent');
  const brokers = { KAFKA_BROKERS: inject('kafkaBrokers'), KAFKA_SSL: false };
  const config = { ...brokers, KAFKA_TOPIC_PREFIX: '', KAFKA_PARTITIONS: 2 };
  const kafka = createKafka(config, 'test', logger);
  const [few, enough] = [`few-${randomUUID()}`, `enough-${randomUUID()}`];
  await createTopics(kafka, [
    { topic: few, numPartitions: 1 },
    { topic: enough, numPartitions: 2 },
  ]);
  const limit = { bytesMax: 1_000 };
  const partitions = [few, enough].flatMap((topic) => [0, 1].map((index) => new TopicPartition(topic, index, limit)));
  const watch = new TopicWatch({ kafka, partitions, partitionCount: 2, logger, onChecked: () => undefined });
  const problem = `topic ${few} has 1 partitions, and KAFKA_PARTITIONS is 2`;
  await watch.readMetadata();
  expect(watch.problems).toEqual([problem]);
  await withAdmin(kafka, (admin) => admin.deleteTopics({ topics: [few] }));
  const isReadable = () =>
    watch.readMetadata().then(
      () => true,
      () => false,
    );
  await eventually(isReadable).toBe(false);
  expect(watch.problems).toEqual([problem]);
});
