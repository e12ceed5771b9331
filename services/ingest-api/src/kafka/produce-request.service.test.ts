import { randomBytes, randomUUID } from 'node:crypto';
import { createLogger } from '@sluice/shared/base/log';
import { loadConfig } from '@sluice/shared/config';
import { createKafka } from '@sluice/shared/kafka/client';
import { createTopics } from '@sluice/shared/kafka/testing/create-topics';
import { withAdmin } from '@sluice/shared/kafka/topics';
import kafkajs from 'kafkajs';
import { expect, inject, onTestFinished, test } from 'vitest';
import { configSchema } from '../config.ts';
import { crc32c, encodeProduceRequest, varintSize } from './produce-request.ts';

const { None, GZIP, ZSTD } = kafkajs.CompressionTypes;

test.each([
  ['as they are', None],
  ['with gzip', GZIP],
  ['with zstd', ZSTD],
])('messages of any size arrive as they were sent, %s', async (_, compression) => {
  const config = loadConfig(configSchema, {
    KAFKA_BROKERS: inject('kafkaBrokers').join(','),
    API_KEYS_FILE: 'unused',
  });
  const kafka = createKafka(config, 'test', createLogger('test', 'silent'));
  const topic = `sizes-${randomUUID()}`;
  await createTopics(kafka, [{ topic, numPartitions: 2 }]);
  const producer = kafka.producer({ allowAutoTopicCreation: false });
  await producer.connect();
  onTestFinished(() => producer.disconnect());
  // Around the sizes at which a length takes one byte more.
  const sizes = [0, 1, 63, 64, 8_191, 8_192, 3, 300_000];
  const messagesOf = (partition: number) =>
    sizes.map((size) => ({ partition, value: randomBytes(size), headers: { kind: 'events', size: String(size) } }));
  const partitions = [0, 1].map((partition) => ({ partition, messages: messagesOf(partition) }));
  const request = { acks: -1, timeout: 5_000, compression, topicData: [{ topic, partitions }] };
  const encode = () => encodeProduceRequest(request);
  const results = await withAdmin(kafka, async (admin) => {
    const [{ leader: nodeId } = { leader: 0 }] = (await admin.fetchTopicMetadata({ topics: [topic] })).topics.flatMap(
      (found) => found.partitions,
    );
    return await producer.sendToBroker({ nodeId, ...request, encode });
  });
  expect(results.map(({ partition, errorCode }) => [partition, errorCode]).toSorted()).toEqual([
    [0, 0],
    [1, 0],
  ]);
  await withAdmin(kafka, async (admin) => {
    for (const { partition, messages } of partitions) {
      for (const [offset, { value, headers }] of messages.entries()) {
        const found = await admin.fetchRecord({ topic, partition, offset: String(offset) });
        expect(found?.key).toBeNull();
        expect(found?.value?.equals(value)).toBe(true);
        expect(Object.entries(found?.headers ?? {}).map(([name, text]) => [name, String(text)])).toEqual(
          Object.entries(headers),
        );
      }
    }
  });
});

test('the checksum is CRC-32C, of any number of bytes, wherever they lie', () => {
  expect(crc32c(Buffer.from('123456789'))).toBe(0xe3069283);
  expect(crc32c(Buffer.alloc(32))).toBe(0x8a9136aa);
  expect(crc32c(Buffer.from('....123456789').subarray(4))).toBe(0xe3069283);
  expect(crc32c(Buffer.alloc(0))).toBe(0);
});

test('the length of a varint', () => {
  expect([0, 63, 64, 8_191, 8_192].map(varintSize)).toEqual([1, 1, 2, 2, 3]);
});
