import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { AnsweringKafka, expectOthersStored } from '../kit/answering-kafka.ts';
import { KAFKA_API } from '../kit/kafka-proxy.ts';
import { startPipeline } from '../kit/pipeline.ts';

/** Error codes of Kafka's protocol. */
const COORDINATOR_LOADS = 14;
const COORDINATOR_NOT_AVAILABLE = 15;
const TOPIC_AUTHORIZATION_FAILED = 29;

const clickhouseUrl = inject('clickhouseUrl');
let kafka: AnsweringKafka;

beforeAll(async () => {
  kafka = await AnsweringKafka.start();
});
afterAll(() => kafka?.[Symbol.asyncDispose]());

test('a partition that may not be read delays only its own events, for a writer that runs and one that starts', async () => {
  await expectOthersStored(kafka, clickhouseUrl, TOPIC_AUTHORIZATION_FAILED);
});

test('a coordinator that the brokers create slowly at a first start: the writer waits for it, and does not start again', async () => {
  const { findCoordinator, joinGroup } = KAFKA_API;
  let looked = 0;
  let joined = 0;
  // kafkajs looks for about ten seconds until it has looked so often. A connection is cut now and then.
  kafka.decide = (api) => {
    if (api === findCoordinator && ++looked <= 18) {
      return looked % 8 === 0 ? 'cut' : { errorCode: COORDINATOR_NOT_AVAILABLE };
    }
    return api === joinGroup && ++joined === 1 ? { errorCode: COORDINATOR_LOADS } : 'deliver';
  };
  try {
    await using running = await startPipeline({ kafkaBrokers: kafka.brokers, clickhouseUrl, name: 'slowcoordinator' });
    await running.submit({ foreignUserGroupId: 'g', events: [{ event: 'e' }] });
    await running.settled(1);
    expect(looked).toBeGreaterThan(18);
    expect(running.services.writer.log()).not.toMatch(/"level":[456]0/);
  } finally {
    kafka.deliverAll();
  }
});
