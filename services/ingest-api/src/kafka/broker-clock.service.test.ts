import { randomUUID } from 'node:crypto';
import { createLogger } from '@sluice/shared/base/log';
import { loadConfig } from '@sluice/shared/config';
import { createKafka } from '@sluice/shared/kafka/client';
import { createTopics } from '@sluice/shared/kafka/testing/create-topics';
import { clockTopicName, withAdmin, withoutAppendTime } from '@sluice/shared/kafka/topics';
import { eventually } from '@sluice/shared/testing/eventually';
import kafkajs from 'kafkajs';
import { Registry } from 'prom-client';
import { afterEach, expect, inject, onTestFinished, test } from 'vitest';
import { configSchema } from '../config.ts';
import { createIngestMetrics } from '../metrics.ts';
import { BrokerClock, type Clocks } from './broker-clock.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

let clock: BrokerClock;

afterEach(() => clock.stop());

function setUp() {
  const config = loadConfig(configSchema, {
    KAFKA_BROKERS: inject('kafkaBrokers').join(','),
    KAFKA_TOPIC_PREFIX: `clock-${randomUUID()}.`,
    KAFKA_PARTITIONS: '1',
    API_KEYS_FILE: 'unused',
  });
  return { config, kafka: createKafka(config, 'test', createLogger('test', 'silent')) };
}

/** Starts to compare these clocks with those of a real Kafka. */
async function start(
  clocks: Clocks,
  { config, kafka } = setUp(),
  logger = createLogger('test', 'silent'),
): Promise<void> {
  clock = new BrokerClock({ kafka, config, logger, clocks, metrics: createIngestMetrics(new Registry()) });
  await clock.start();
}

test('a comparison that is more than five minutes old proves nothing', async () => {
  let passedMs = 0;
  await start({ wallMs: () => Date.now() + passedMs, monotonicMs: () => performance.now() + passedMs });
  await eventually(() => clock.problem()).toBeUndefined();
  // From now on nothing is compared any more, as when Kafka is away.
  await clock.stop();
  passedMs = 4 * MINUTE_MS;
  expect([clock.isCompared, clock.problem()]).toEqual([true, undefined]);
  passedMs = 6 * MINUTE_MS;
  expect(clock.isCompared).toBe(false);
  expect(clock.problem()).toBe("the clock has not been compared with Kafka's for 5 minutes");
});

test('a clock that is set while it is compared is noticed', async () => {
  let asked = 0;
  const wallMs = () => {
    asked += 1;
    return Date.now() + (asked > 1 ? HOUR_MS : 0);
  };
  await start({ wallMs, monotonicMs: () => performance.now() });
  await eventually(() => clock.isCompared).toBe(true);
  expect(clock.problem()).toMatch(/was set|ahead of/);
  await eventually(() => clock.problem()).toMatch(/^the clock is (3600|359[89])\.\d s ahead of Kafka's$/);
});

test('the time is that of this clock, to the millisecond', async () => {
  await start({ wallMs: Date.now, monotonicMs: () => performance.now() });
  await eventually(() => clock.problem()).toBeUndefined();
  for (let times = 0; times < 20_000; times += 1) {
    const before = Date.now();
    const now = clock.nowMs();
    expect(now).toBeGreaterThanOrEqual(before);
    expect(now).toBeLessThanOrEqual(Date.now());
  }
});

test('a clock that is set does not change the time of requests that were admitted before', async () => {
  let aheadMs = 0;
  await start({ wallMs: () => Date.now() + aheadMs, monotonicMs: () => performance.now() });
  await eventually(() => clock.problem()).toBeUndefined();
  aheadMs = HOUR_MS;
  expect(Math.abs(clock.nowMs() - Date.now())).toBeLessThan(MINUTE_MS);
  await eventually(() => clock.problem()).toMatch(/ahead of/);
  expect(Math.abs(clock.nowMs() - Date.now())).toBeLessThan(MINUTE_MS);
  aheadMs = 0;
  await eventually(() => clock.problem()).toBeUndefined();
});

test('a Kafka that acknowledges without its time is named once, and a comparison from before holds for minutes', async () => {
  const made = setUp();
  const topic = clockTopicName(made.config);
  await createTopics(made.kafka, [{ topic, numPartitions: 1 }]);
  const sentence = withoutAppendTime(topic);
  const lines: string[] = [];
  const logger = createLogger('test', 'error', { write: (line) => void lines.push(JSON.parse(line).msg) });
  let passedMs = 0;
  const clocks = { wallMs: () => Date.now() + passedMs, monotonicMs: () => performance.now() + passedMs };
  await start(clocks, made, logger);
  await eventually(() => clock.problem()).toBe(sentence);
  await withAdmin(made.kafka, async (admin) => {
    const attempts = async () => Number((await admin.fetchTopicOffsets(topic))[0]?.high);
    await eventually(attempts).toBeGreaterThan(2);
    expect(lines).toEqual([sentence]);
    const stampedBy = async (value: string) => {
      const configEntries = [{ name: 'message.timestamp.type', value }];
      const resources = [{ type: kafkajs.ConfigResourceTypes.TOPIC, name: topic, configEntries }];
      await admin.alterConfigs({ validateOnly: false, resources });
    };
    await stampedBy('LogAppendTime');
    await eventually(() => clock.problem()).toBeUndefined();

    await stampedBy('CreateTime');
    const producer = made.kafka.producer({ allowAutoTopicCreation: false });
    await producer.connect();
    onTestFinished(() => producer.disconnect());
    const ownTime = async () => (await producer.send({ topic, messages: [{ value: '' }] }))[0]?.logAppendTime;
    await eventually(ownTime).toBe('-1');
  });
  passedMs = MINUTE_MS;
  await eventually(() => lines).toEqual([sentence, sentence]);
  expect(clock.problem()).toBeUndefined();
  passedMs += 5 * MINUTE_MS;
  expect(clock.problem()).toBe(sentence);
});
