import { randomUUID } from 'node:crypto';
import { createLogger } from '@sluice/shared/base/log';
import { loadConfig } from '@sluice/shared/config';
import { createKafka } from '@sluice/shared/kafka/client';
import { withAdmin } from '@sluice/shared/kafka/topics';
import kafkajs from 'kafkajs';
import { expect, inject, onTestFinished, test } from 'vitest';
import { configSchema } from './config.ts';
import { post, startIngest } from './testing/ingest.ts';

/** Starts the service with variables; its topic of events takes no message above 20 kB. */
async function startWithSmallMessages(env: Readonly<Record<string, string>>) {
  const brokers = inject('kafkaBrokers');
  const prefix = `settings-${randomUUID()}.`;
  const ingest = await startIngest(brokers, { KAFKA_TOPIC_PREFIX: prefix, ...env });
  onTestFinished(ingest.stop);
  const config = loadConfig(configSchema, { KAFKA_BROKERS: brokers.join(','), API_KEYS_FILE: 'unused' });
  const configEntries = [
    { name: 'max.message.bytes', value: '20000' },
    // What is not named gets its default.
    { name: 'message.timestamp.type', value: 'LogAppendTime' },
  ];
  const resources = [{ type: kafkajs.ConfigResourceTypes.TOPIC, name: `${prefix}events`, configEntries }];
  const kafka = createKafka(config, 'test', createLogger('test', 'silent'));
  await withAdmin(kafka, (admin) => admin.alterConfigs({ validateOnly: false, resources }));
  return ingest;
}

test.each([
  ['none', 413],
  ['gzip', 202],
  ['zstd', 202],
])(
  'with KAFKA_COMPRESSION %s, a large message of equal characters gets %d where Kafka takes small ones',
  async (kind, status) => {
    const { app } = await startWithSmallMessages({ KAFKA_COMPRESSION: kind });
    const event = { event: 'e', properties: { text: 'x'.repeat(100_000) } };
    expect((await post(app, { foreignUserGroupId: 'g', events: [event] })).statusCode).toBe(status);
  },
);

test('the limits of the clock and of the memory are those of the variables', async () => {
  const env = { CLOCK_SKEW_MS_MAX: '7654', PENDING_BYTES_MAX: '123456789' };
  const { app, stop } = await startIngest(inject('kafkaBrokers'), env);
  onTestFinished(stop);
  const { body } = await app.inject('/metrics');
  expect(body).toContain('\nsluice_ingest_clock_ahead_limit_seconds 7.654\n');
  expect(body).toContain('\nsluice_ingest_memory_budget_bytes 123456789\n');
});
