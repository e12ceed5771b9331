import { randomUUID } from 'node:crypto';
import { createLogger } from '@sluice/shared/base/log';
import { kafkaEnv, loadConfig } from '@sluice/shared/config';
import { createKafka } from '@sluice/shared/kafka/client';
import { createTopics } from '@sluice/shared/kafka/testing/create-topics';
import type { IResourceConfigEntry } from 'kafkajs';
import { inject, onTestFinished } from 'vitest';
import { z } from 'zod';
import { LagReader } from '../kafka/lag.ts';

/** Creates a topic of one partition that nobody has committed an offset of. */
export async function createTopic(configEntries: IResourceConfigEntry[] = []) {
  const config = loadConfig(z.object(kafkaEnv), { KAFKA_BROKERS: inject('kafkaBrokers').join(',') });
  const kafka = createKafka(config, 'test', createLogger('test', 'silent'));
  const topic = `lag-${randomUUID()}`;
  await createTopics(kafka, [{ topic, numPartitions: 1, configEntries }]);
  const producer = kafka.producer();
  await producer.connect();
  onTestFinished(() => producer.disconnect());
  const groupId = `group-${topic}`;
  const lag = new LagReader({ kafka, groupId, topics: [topic] });
  onTestFinished(() => lag.stop());
  const read = async () => (await lag.read())?.[0];
  return {
    kafka,
    topic,
    groupId,
    read,
    lag,
    send: (message: object) => producer.send({ topic, messages: [message as never] }),
  };
}
