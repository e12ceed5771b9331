import { createLogger } from '@sluice/shared/base/log';
import { createKafka } from '@sluice/shared/kafka/client';
import type { Kafka } from 'kafkajs';

/** A client as the services have it, which logs nothing. */
export function kafkaClient(brokers: readonly string[]): Kafka {
  const config = { KAFKA_BROKERS: [...brokers], KAFKA_TOPIC_PREFIX: '', KAFKA_PARTITIONS: 1, KAFKA_SSL: false };
  return createKafka(config, 'test', createLogger('test', 'silent'));
}
