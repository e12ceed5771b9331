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
import { expect, inject, onTestFinished, test, vi } from 'vitest';
import { z } from 'zod';
import { createTopic } from '../testing/lag-topic.ts';
import { readLag } from './lag.ts';

test('the lag grows with what comes, also when the clock was set back', async () => {
  const { topic, read, send } = await createTopic();
  await eventually(read).toEqual({ topic, partition: 0, messages: 0, seconds: 0, headroomSeconds: undefined });
  await send({ value: 'a' });
  await send({ value: 'b' });
  setClockBack();
  await eventually(async () => (await read())?.messages).toBe(2);
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
