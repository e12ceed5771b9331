import { randomUUID } from 'node:crypto';
import { expect, inject, test } from 'vitest';
import { createLogger } from '../base/log.ts';
import { createKafka } from './client.ts';
import { createTopics } from './testing/create-topics.ts';
import { shortcomings, TopicDurability } from './topic-durability.ts';

const warningsOf = (brokers: number, replicas: number, inSyncMin: number | undefined) =>
  shortcomings({ brokers, topics: [{ topic: 't', replicas, inSyncMin }] }).join();

test('a topic of three replicas, two of them in sync, is as it should be, and one broker alone is meant to be so', () => {
  for (const [brokers, replicas, inSyncMin] of [
    [3, 3, 2],
    [5, 4, 3],
    [1, 1, 1],
    // Two of three brokers are away.
    [1, 3, 2],
  ] as const) {
    expect(warningsOf(brokers, replicas, inSyncMin)).toBe('');
  }
});

test('what a topic lacks is said, and what that costs', () => {
  expect(warningsOf(3, 3, 1)).toContain('min.insync.replicas=1: a 202 may rest on one broker; set it to 2');
  expect(warningsOf(1, 3, 1)).toContain('a 202 may rest on one broker');
  expect(warningsOf(3, 1, 2)).toContain(
    '1 replica of each partition: a 202 may rest on one broker; give it 3 replicas',
  );
  expect(warningsOf(2, 2, 1)).toContain('a 202 may rest on one broker; give it 3 replicas');
  expect(warningsOf(2, 2, 2)).toContain('without one of its brokers nothing is accepted; give it 3 replicas');
  expect(warningsOf(3, 3, undefined)).toContain('cannot be read: it should be 2; allow DescribeConfigs');
});

test('a single broker is read, and warned of by nobody', async () => {
  const lines: string[] = [];
  const logger = createLogger('test', 'warn', { write: (line) => void lines.push(line) });
  const brokers = { KAFKA_BROKERS: inject('kafkaBrokers'), KAFKA_SSL: false };
  const kafka = createKafka({ ...brokers, KAFKA_TOPIC_PREFIX: '', KAFKA_PARTITIONS: 2 }, 'test', logger);
  const topic = `durable-${randomUUID()}`;
  await createTopics(kafka, [{ topic, numPartitions: 2 }]);
  const durability = new TopicDurability(kafka, [topic], logger);
  await durability.check();
  expect(durability.found).toEqual({ brokers: 1, topics: [{ topic, replicas: 1, inSyncMin: 1 }] });
  expect([durability.warnings, lines]).toEqual([[], []]);
});
