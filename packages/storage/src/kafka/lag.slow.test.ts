import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { createLogger } from '@sluice/shared/base/log';
import { kafkaEnv, loadConfig } from '@sluice/shared/config';
import { createKafka } from '@sluice/shared/kafka/client';
import { createTopics } from '@sluice/shared/kafka/testing/create-topics';
import { topicNames } from '@sluice/shared/kafka/topics';
import { setClockBack } from '@sluice/shared/testing/clock';
import { eventually } from '@sluice/shared/testing/eventually';
import type { IResourceConfigEntry } from 'kafkajs';
import { expect, inject, onTestFinished, test, vi } from 'vitest';
import { z } from 'zod';
import { LagReader, readLag } from './lag.ts';

const HOUR_MS = 3_600_000;

/** Creates a topic of one partition that nobody has committed an offset of. */
async function createTopic(configEntries: IResourceConfigEntry[] = []) {
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

test('the lag grows with what comes, also when the clock was set back', async () => {
  const { topic, read, send } = await createTopic();
  await eventually(read).toEqual({ topic, partition: 0, messages: 0, seconds: 0, headroomSeconds: undefined });
  await send({ value: 'a' });
  await send({ value: 'b' });
  setClockBack();
  await eventually(async () => (await read())?.messages).toBe(2);
});

test('everything is stored through now where nothing waits, and else through the time of the oldest message', async () => {
  const { kafka, topic, groupId, lag, send } = await createTopic();
  const startedMs = Date.now();
  const through = async () => (await lag.storedThrough())?.throughMs ?? 0;
  await eventually(through).toBeGreaterThan(startedMs);
  await send({ value: 'a' });
  const sentMs = Date.now();
  await eventually(async () => (await lag.read())?.[0]?.messages).toBe(1);
  await eventually(async () => Date.now() - sentMs).toBeGreaterThan(1_500);
  expect(await through()).toBeLessThanOrEqual(sentMs);
  const admin = kafka.admin();
  await admin.connect();
  onTestFinished(() => admin.disconnect());
  await admin.setOffsets({ groupId, topic, partitions: [{ partition: 0, offset: '1' }] });
  await eventually(through).toBeGreaterThan(sentMs);
  expect((await lag.storedThrough())?.committed).toEqual([{ topic, partition: 0, offset: 1n }]);
});

test('the headroom is the time until Kafka deletes the oldest message that is not committed', async () => {
  const createDayTopic = async (...agesHours: readonly number[]) => {
    const created = await createTopic([
      { name: 'retention.ms', value: String(24 * HOUR_MS) },
      { name: 'message.timestamp.type', value: 'CreateTime' },
    ]);
    for (const hours of agesHours) {
      await created.send({ value: 'v', timestamp: String(Date.now() - hours * HOUR_MS) });
    }
    const headroomHours = async () => Math.ceil(((await created.read())?.headroomSeconds ?? Number.NaN) / 3_600);
    return { ...created, headroomHours };
  };
  const { kafka, topic, groupId, headroomHours } = await createDayTopic(20, 14, 22);
  await eventually(headroomHours).toBe(4);
  const admin = kafka.admin();
  await admin.connect();
  onTestFinished(() => admin.disconnect());
  await admin.setOffsets({ groupId, topic, partitions: [{ partition: 0, offset: '1' }] });
  await eventually(headroomHours).toBe(10);
  // Kafka deletes nothing while the segment has a younger message.
  const overdue = await createDayTopic(30, 1);
  await eventually(overdue.headroomHours).toBe(0);
});

test('there is no headroom where age deletes nothing', async () => {
  for (const entry of [
    { name: 'retention.ms', value: '-1' },
    { name: 'cleanup.policy', value: 'compact' },
  ]) {
    const { read, send } = await createTopic([entry]);
    await send({ key: 'k', value: 'v' });
    await eventually(read).toMatchObject({ messages: 1, headroomSeconds: undefined });
  }
});

/** Starts a proxy in front of a broker that sends nothing back until it is released. */
async function startSilentBroker() {
  const [broker = ''] = inject('kafkaBrokers');
  const { hostname, port } = new URL(`tcp://${broker}`);
  const released = Promise.withResolvers<void>();
  const asked = Promise.withResolvers<void>();
  const sockets: Socket[] = [];
  const server = createServer(async (client) => {
    const upstream = connect(Number(port), hostname);
    sockets.push(client, upstream);
    for (const socket of [client, upstream]) socket.on('error', () => undefined);
    client.once('data', () => asked.resolve()).pipe(upstream);
    await released.promise;
    upstream.pipe(client);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return {
    address: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    /** Resolves when somebody asks. */
    asked: asked.promise,
    release: released.resolve,
  };
}

test('a command waits for half a minute for what Kafka says of a group, and then says what it does not know', async () => {
  const KAFKA_TOPIC_PREFIX = `lag-${randomUUID()}.`;
  const { kafka } = await createTopic();
  const topics = Object.values(topicNames({ KAFKA_TOPIC_PREFIX }));
  await createTopics(
    kafka,
    topics.map((topic) => ({ topic, numPartitions: 1 })),
  );
  // The clock of the wait goes on as the real one does, and is set ahead.
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'], shouldAdvanceTime: true });
  onTestFinished(() => void vi.useRealTimers());
  const readSlowly = async () => {
    const broker = await startSilentBroker();
    const config = loadConfig(z.object(kafkaEnv), { KAFKA_BROKERS: broker.address });
    const silent = createKafka(config, 'test', createLogger('test', 'silent'));
    const lags = readLag(silent, { KAFKA_TOPIC_PREFIX }, 'group', undefined).catch((error: Error) => error.message);
    await broker.asked;
    return { broker, lags };
  };

  const late = await readSlowly();
  await vi.advanceTimersByTimeAsync(9_000);
  late.broker.release();
  expect(await late.lags).toMatchObject(topics.map((topic) => ({ topic, messages: 0 })));

  const never = await readSlowly();
  await vi.advanceTimersByTimeAsync(31_000);
  expect(await never.lags).toBe('the topics, or the offsets of the group group, cannot be read at the moment');
});
