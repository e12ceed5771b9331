import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { AnsweringKafka, expectOthersStored } from '../kit/answering-kafka.ts';
import { KAFKA_API } from '../kit/kafka-proxy.ts';
import { startPipeline } from '../kit/pipeline.ts';

/** Error codes of Kafka's protocol. */
const GROUP_AUTHORIZATION_FAILED = 30;
const KAFKA_STORAGE_ERROR = 56;

const clickhouseUrl = inject('clickhouseUrl');
let kafka: AnsweringKafka;

beforeAll(async () => {
  kafka = await AnsweringKafka.start();
});
afterAll(() => kafka?.[Symbol.asyncDispose]());

test('a partition that has damaged records delays only its own events, for a writer that runs and one that starts', async () => {
  await expectOthersStored(kafka, clickhouseUrl, KAFKA_STORAGE_ERROR);
});

test('a group that the writer may not use: it ends, and says why', async () => {
  kafka.decide = (api) => (api === KAFKA_API.findCoordinator ? { errorCode: GROUP_AUTHORIZATION_FAILED } : 'deliver');
  try {
    const start = startPipeline({ kafkaBrokers: kafka.brokers, clickhouseUrl, name: 'forbidden' });
    await expect(start).rejects.toThrow(/"level":"fatal".*Not authorized to access group.*cannot go on/);
  } finally {
    kafka.deliverAll();
  }
});
