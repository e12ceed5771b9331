import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { eventually } from '@sluice/shared/testing/eventually';
import kafkajs from 'kafkajs';
import { expect, test } from 'vitest';
import { type LocalKafka, startKafka } from './kafka.ts';
import { isAlive, orphan } from './testing/orphan.ts';
import { makeTempDir } from './testing/temp-dir.ts';

async function using<T>(kafka: LocalKafka, use: (client: kafkajs.Kafka) => Promise<T>): Promise<T> {
  const retry = { initialRetryTime: 100, retries: 120, maxRetryTime: 1000 };
  const client = new kafkajs.Kafka({ brokers: [...kafka.brokers], logLevel: kafkajs.logLevel.NOTHING, retry });
  return use(client);
}

async function createTopic(kafka: LocalKafka, topic: string): Promise<void> {
  await using(kafka, async (client) => {
    const admin = client.admin();
    await admin.connect();
    const create = () => admin.createTopics({ topics: [{ topic, numPartitions: 3 }], timeout: 60_000 });
    const isCreated = () =>
      create().then(
        () => true,
        () => false,
      );
    // A broker of a busy machine may be fenced for a moment; then there are too few replicas.
    for (let attempt = 1; attempt < 20 && !(await isCreated()); attempt += 1) await delay(1_000);
    await create();
    await admin.disconnect();
  });
}

async function produce(kafka: LocalKafka, topic: string, partition: number): Promise<void> {
  await using(kafka, async (client) => {
    const producer = client.producer();
    await producer.connect();
    await producer.send({ topic, acks: -1, messages: [{ partition, value: 'a message' }] });
    await producer.disconnect();
  });
}

async function countMessages(kafka: LocalKafka, topic: string): Promise<number> {
  return using(kafka, async (client) => {
    const admin = client.admin();
    await admin.connect();
    const offsets = await admin.fetchTopicOffsets(topic);
    await admin.disconnect();
    return offsets.reduce((sum, { high, low }) => sum + Number(high) - Number(low), 0);
  });
}

test('a broker keeps its messages through a kill, a restart and a new start', async () => {
  await using dir = await makeTempDir();
  const dataDir = join(dir.path, 'a folder with a space and an é');
  const kafka = await startKafka({ dataDir });
  await createTopic(kafka, 'kept');
  await produce(kafka, 'kept', 0);
  await kafka.kill9();
  expect(kafka.pids).toEqual([undefined]);
  await kafka.restart();
  await produce(kafka, 'kept', 1);
  await kafka.stop();

  const again = await startKafka({ dataDir });
  expect(await countMessages(again, 'kept')).toBe(2);
  await expect(startKafka({ dataDir })).rejects.toMatchObject({
    code: 'DATA_FOLDER_IN_USE',
    message: expect.stringContaining(`pid ${again.pids[0]}`),
  });
  await again.stop();
  expect(await readFile(join(dataDir, 'broker-1.log'), 'utf8')).toContain(' INFO ');
});

test('three brokers acknowledge on all in-sync replicas while one of them is down', async () => {
  await using dir = await makeTempDir();
  const kafka = await startKafka({ dataDir: dir.path, brokers: 3 });
  await createTopic(kafka, 'replicated');
  await kafka.kill9(1);
  for (const partition of [0, 1, 2]) await produce(kafka, 'replicated', partition);
  await kafka.restart(1);
  expect(await countMessages(kafka, 'replicated')).toBe(3);
  await Promise.all([0, 1, 2].map((broker) => kafka.kill9(broker)));
});

test('a broker ends when its parent is killed', async () => {
  await using dir = await makeTempDir();
  const [pid = 0] = await orphan('kafka', dir.path);
  await eventually(() => isAlive(pid)).toBe(false);
});
