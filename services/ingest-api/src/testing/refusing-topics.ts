import { randomUUID } from 'node:crypto';
import { createLogger } from '@sluice/shared/base/log';
import { createKafka } from '@sluice/shared/kafka/client';
import { withAdmin } from '@sluice/shared/kafka/topics';
import kafkajs from 'kafkajs';
import { afterEach, beforeEach, inject } from 'vitest';
import { type Ingest, startIngest } from './ingest.ts';

let prefix: string;
/** The service of a test. */
export let ingest: Ingest;

/** Starts ingest-api with topics of its own before each test of a file. */
export function startBeforeEach(): void {
  beforeEach(async () => {
    prefix = `refused-${randomUUID()}.`;
    ingest = await startIngest(inject('kafkaBrokers'), { KAFKA_TOPIC_PREFIX: prefix, PRODUCE_TIMEOUT_MS: '3000' });
  });
  afterEach(() => ingest.stop());
}

/** Gives a topic of this ingest-api a setting, and takes all others back. */
export async function configure(topic: 'events' | 'entities', name: string, value: string): Promise<void> {
  const config = {
    KAFKA_BROKERS: inject('kafkaBrokers'),
    KAFKA_TOPIC_PREFIX: '',
    KAFKA_PARTITIONS: 1,
    KAFKA_SSL: false,
  };
  const configEntries = [
    { name: 'message.timestamp.type', value: 'LogAppendTime' },
    { name, value },
  ];
  const resources = [{ type: kafkajs.ConfigResourceTypes.TOPIC, name: `${prefix}${topic}`, configEntries }];
  await withAdmin(createKafka(config, 'test', createLogger('test', 'silent')), (admin) =>
    admin.alterConfigs({ validateOnly: false, resources }),
  );
}

export const anEvent = (properties: object = {}) => ({
  event: 'e',
  uuid: randomUUID(),
  timestamp: new Date().toISOString(),
  properties,
});
