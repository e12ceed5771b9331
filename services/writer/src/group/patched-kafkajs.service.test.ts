import { randomUUID } from 'node:crypto';
import { createRequire } from 'node:module';
import { setTimeout as delay } from 'node:timers/promises';
import { createLogger } from '@sluice/shared/base/log';
import { loadConfig } from '@sluice/shared/config';
import { createKafka } from '@sluice/shared/kafka/client';
import { createTopics } from '@sluice/shared/kafka/testing/create-topics';
import { withAdmin } from '@sluice/shared/kafka/topics';
import { expect, inject, onTestFinished, test, vi } from 'vitest';
import { configSchema } from '../config.ts';
import { createKafkaConsumer } from './group-consumer.ts';

/** What of kafkajs's runner the tests use: it joins the group, has fetches made and batches handled, and commits. */
interface Runner {
  start(): Promise<void>;
  stop(): Promise<void>;
  commitOffsets(offsets: unknown): Promise<void>;
}
type RunnerClass = new (options: object) => Runner;
const require = createRequire(import.meta.url);
const RunnerOfKafkaJs: RunnerClass = require('kafkajs/src/consumer/runner');

interface ListOffsetsRequest {
  readonly topics: readonly {
    readonly topic: string;
    readonly partitions: readonly { readonly partition: number }[];
  }[];
}
const Broker: { prototype: { listOffsets(request: ListOffsetsRequest): Promise<unknown> } } =
  require('kafkajs/src/broker');

/** Kafka's code of a partition whose log is damaged. */
const KAFKA_STORAGE_ERROR = 56;

/** Returns a runner of a group of which nothing but the given methods is there. */
function createRunner(group: object): Runner {
  const ignore = () => undefined;
  const logger = { namespace: () => logger, debug: ignore, info: ignore, warn: ignore, error: ignore };
  const consumerGroup = { connect: ignore, heartbeat: ignore, leave: ignore, getNodeIds: () => [1], ...group };
  const retry = { initialRetryTime: 1, retries: 5 };
  const instrumentationEmitter = { emit: ignore };
  const runner = new RunnerOfKafkaJs({ logger, consumerGroup, retry, concurrency: 1, instrumentationEmitter });
  onTestFinished(() => runner.stop());
  return runner;
}

/** Fetches nothing, after a while. */
async function nothing(): Promise<never[]> {
  await delay(5);
  return [];
}

test('a member whose join has failed joins before it fetches again', async () => {
  const steps: string[] = [];
  const done = Promise.withResolvers<void>();
  const runner = createRunner({
    async joinAndSync() {
      steps.push('join');
      if (steps.length === 3) throw new Error('no response');
    },
    async fetch() {
      steps.push('fetch');
      if (steps.length === 2) throw Object.assign(new Error('rebalancing'), { type: 'REBALANCE_IN_PROGRESS' });
      done.resolve();
      return await nothing();
    },
  });
  await runner.start();
  await done.promise;
  expect(steps.slice(0, 5)).toEqual(['join', 'fetch', 'join', 'join', 'fetch']);
});

test('a fetch with old metadata leaves the join to the runner, which waits for all other fetches', async () => {
  const ConsumerGroup = require('kafkajs/src/consumer/consumerGroup');
  let joins = 0;
  const group = Object.assign(Object.create(ConsumerGroup.prototype), {
    logger: { debug: () => undefined },
    cluster: { refreshMetadata: async () => undefined },
    joinAndSync: async () => {
      joins += 1;
    },
  });
  const stale = Object.assign(new Error('the leader has moved'), { type: 'NOT_LEADER_FOR_PARTITION' });
  await expect(group.recoverFromFetch(stale)).rejects.toMatchObject({ type: 'REBALANCE_IN_PROGRESS' });
  expect(joins).toBe(0);
});

test('a partition without a leader has no offset to begin at yet, which is no error', () => {
  const initialize = require('kafkajs/src/consumer/offsetManager/initializeConsumerOffsets');
  const committed = [{ topic: 't', partitions: [{ partition: 0, offset: '-1' }] }];
  expect(initialize(committed, [])).toEqual([{ topic: 't', partitions: [{ partition: 0, offset: undefined }] }]);
});

test('a commit that fails is not repeated: by then newer offsets may be committed', async () => {
  let commits = 0;
  const runner = createRunner({
    joinAndSync: async () => undefined,
    fetch: nothing,
    async commitOffsets() {
      commits += 1;
      if (commits === 1) throw new Error('no response');
    },
  });
  await runner.start();
  await expect(runner.commitOffsets({ topics: [] })).rejects.toThrow('no response');
  expect(commits).toBe(1);
});

function createClient(groupId: string) {
  const config = loadConfig(configSchema, {
    KAFKA_BROKERS: inject('kafkaBrokers').join(','),
    KAFKA_GROUP_ID: groupId,
    CLICKHOUSE_URL: 'http://127.0.0.1',
  });
  return { config, kafka: createKafka(config, 'test', createLogger('test', 'silent')) };
}

test('the event of a join has the generation of the group', async () => {
  const topic = `generation-${randomUUID()}`;
  const { config, kafka } = createClient(topic);
  await createTopics(kafka, [{ topic, numPartitions: 1 }]);
  const consumer = createKafkaConsumer(kafka, config);
  onTestFinished(() => consumer.disconnect());
  const joined = Promise.withResolvers<number>();
  consumer.on(consumer.events.GROUP_JOIN, ({ payload }) => joined.resolve(payload.generationId));
  await consumer.connect();
  await consumer.subscribe({ topics: [topic], fromBeginning: true });
  await consumer.run({ autoCommit: false, eachMessage: async () => undefined });
  expect(await joined.promise).toBe(1);
});

/** What a client of kafkajs knows of its brokers. */
interface Cluster {
  readonly brokerPool: { readonly seedBroker: { readonly connectionPool: { host: string; port: number } } };
  connect(): Promise<void>;
  disconnect(): Promise<void>;
  refreshMetadata(): Promise<void>;
  removeBroker(address: { host: string; port: number }): void;
}

test('metadata are still read when the connection to the last broker breaks meanwhile', async () => {
  const { kafka } = createClient('metadata');
  const name = Object.getOwnPropertySymbols(kafka).find((symbol) => String(symbol).includes('createCluster'));
  const { [name as symbol]: create } = kafka as unknown as Record<symbol, (options: object) => Cluster>;
  if (!create) throw new Error('kafkajs creates its clusters in another way');
  const cluster = create({ metadataMaxAge: 300_000 });
  await cluster.connect();
  onTestFinished(() => cluster.disconnect());
  await cluster.refreshMetadata();
  const refreshing = cluster.refreshMetadata();
  // A consumer whose fetch was broken off does so.
  const { host, port } = cluster.brokerPool.seedBroker.connectionPool;
  cluster.removeBroker({ host, port });
  await refreshing;
  await cluster.refreshMetadata();
});

test('partitions that fail between the two requests for their offsets are left out, which is no error', async () => {
  const topic = `damaged-${randomUUID()}`;
  const { kafka } = createClient(topic);
  await createTopics(kafka, [{ topic, numPartitions: 2 }]);
  let listed = 0;
  const listOffsets = vi.spyOn(Broker.prototype, 'listOffsets').mockImplementation(async ({ topics }) => ({
    responses: topics.map(({ topic, partitions }) => ({
      topic,
      partitions: partitions.map(({ partition }) => {
        listed += 1;
        return { partition, errorCode: listed <= 2 ? 0 : KAFKA_STORAGE_ERROR, offset: '0' };
      }),
    })),
  }));
  onTestFinished(() => listOffsets.mockRestore());
  expect(await withAdmin(kafka, (admin) => admin.fetchTopicOffsets(topic))).toEqual([]);
});

test('a partition whose log does not hold the next offset is paused, and no message is skipped', async () => {
  const topic = `range-${randomUUID()}`;
  const { config, kafka } = createClient(topic);
  await createTopics(kafka, [{ topic, numPartitions: 1 }]);
  const producer = kafka.producer();
  await producer.connect();
  onTestFinished(() => producer.disconnect());
  await producer.send({ topic, messages: [{ value: 'a' }, { value: 'b' }] });
  await withAdmin(kafka, async (admin) => {
    // Otherwise kafkajs does not know the leader.
    await admin.fetchTopicOffsets(topic);
    await admin.deleteTopicRecords({ topic, partitions: [{ partition: 0, offset: '1' }] });
  });

  const consumer = createKafkaConsumer(kafka, config);
  onTestFinished(() => consumer.disconnect());
  const reported = Promise.withResolvers<unknown>();
  consumer.on(consumer.events.OFFSET_OUT_OF_RANGE, ({ payload }) => reported.resolve(payload));
  consumer.on(consumer.events.GROUP_JOIN, () => consumer.seek({ topic, partition: 0, offset: '0' }));
  await consumer.connect();
  await consumer.subscribe({ topics: [topic], fromBeginning: true });
  await consumer.run({ autoCommit: false, eachMessage: async ({ message }) => reported.resolve(message.offset) });
  expect(await reported.promise).toEqual({ topic, partition: 0 });
  expect(consumer.paused()).toEqual([{ topic, partitions: [0] }]);
});
