import { ensureTopics, withAdmin } from '@sluice/shared/kafka/topics';
import { eventually } from '@sluice/shared/testing/eventually';
import { expect, inject, test } from 'vitest';
import { diagnose, type Environment } from '../kit/doctor.ts';
import { startIngestAlone } from '../kit/ingest-alone.ts';
import { kafkaClient } from '../kit/kafka-client.ts';
import { type KafkaLack, startKfake } from '../kit/kfake.ts';
import { startLoad } from '../kit/load.ts';
import { startPipeline } from '../kit/pipeline.ts';
import type { Service } from '../kit/service.ts';
import { TESTED_KAFKAS } from '../kit/tested-engines.ts';
import { expectExactlyOnce } from '../kit/verify-delivery.ts';

// Another implementation of Kafka's protocol, which is built with Go: what works with it does not depend on how Apache Kafka
// answers. And brokers that lack one thing: doctor and the services name it, and nothing hangs.

const { name } = TESTED_KAFKAS.kfake;

/** What `/readyz` says. */
async function readyz({ url }: Service): Promise<{ status: string; missing?: string[]; warnings?: string[] }> {
  return (await (await fetch(`${url}/readyz`)).json()) as { status: string };
}

/** Creates the topics as services do. */
async function environmentOf(brokers: readonly string[]): Promise<Environment> {
  const config = { KAFKA_BROKERS: [...brokers], KAFKA_TOPIC_PREFIX: 'other.', KAFKA_PARTITIONS: 2 };
  await ensureTopics(kafkaClient(brokers), { ...config, KAFKA_SSL: false });
  return {
    ...{ KAFKA_BROKERS: brokers.join(), KAFKA_TOPIC_PREFIX: 'other.', KAFKA_PARTITIONS: '2' },
    CLICKHOUSE_URL: inject('clickhouseUrl'),
  };
}

/** What doctor says of Kafka that is not `ok`. */
async function problemsOf(env: Environment) {
  const { results } = await diagnose(['ingest-api', 'writer'], env);
  return results
    .filter((one) => one.name.startsWith('kafka.') && one.state !== 'ok')
    .map(({ name: check, state, found, todo }) => ({ name: check, state, found, todo }));
}

test(`${name}: what was accepted is stored once, while the connections to a broker are cut and a writer is killed`, async () => {
  await using kfake = await startKfake({ brokers: 3 });
  const clickhouseUrl = inject('clickhouseUrl');
  await using pipeline = await startPipeline({ kafkaBrokers: kfake.brokers, clickhouseUrl, name: 'kfake' });
  await using load = startLoad({ pipeline, urls: () => [pipeline.services['ingest-api'].url], concurrency: 4 });
  for (const fault of [() => kfake.cut(), () => pipeline.killAndRestart('writer'), () => kfake.cut()]) {
    const before = load.acceptedSoFar();
    await eventually(load.acceptedSoFar).toBeGreaterThan(before + 50);
    await fault();
  }
  const before = load.acceptedSoFar();
  await eventually(load.acceptedSoFar).toBeGreaterThan(before + 50);
  await expectExactlyOnce(pipeline, clickhouseUrl, await load.stop());
  for (const service of [pipeline.services['ingest-api'], pipeline.services.writer]) {
    expect(await readyz(service)).toEqual({ status: 'ok' });
  }
});

test(`${name}: doctor finds nothing wrong, also with older requests`, async () => {
  for (const [version, expected] of [
    ['4.3', []],
    ['2.1', [{ name: 'kafka.version', state: 'note' }]],
  ] as const) {
    await using kfake = await startKfake({ brokers: 3, version });
    expect(await problemsOf(await environmentOf(kfake.brokers))).toMatchObject(expected);
  }
});

const LACKS: readonly [lack: KafkaLack, found: Readonly<Record<string, readonly [state: string, found: RegExp]>>][] = [
  [
    'append-time',
    {
      'kafka.records': ['wrong', /no time of the broker, though the topic has LogAppendTime/],
      'kafka.fetched': ['wrong', /the time of its producer, though the topic has LogAppendTime/],
    },
  ],
  ['acknowledged-time', { 'kafka.records': ['wrong', /no time of the broker, though the topic has LogAppendTime/] }],
  ['record-time', { 'kafka.fetched': ['wrong', /a fetched record has no time/] }],
  ['leader-epoch', { 'kafka.fetched': ['wrong', /a fetched batch has no leader epoch/] }],
  ['offsets-by-time', { 'kafka.fetched': ['note', /ListOffsets by time returns another offset/] }],
];

test.each(LACKS)('a broker without %s: doctor names it, and nothing else', async (lack, expected) => {
  await using kfake = await startKfake({ brokers: 3, version: '4.3', lacks: [lack] });
  expect(await problemsOf(await environmentOf(kfake.brokers))).toEqual(
    Object.entries(expected).map(([name, [state, found]]) => ({
      ...{ name, state, found: expect.stringMatching(found) },
      todo: expect.stringMatching(/broker|offsets/),
    })),
  );
});

test('topics that would have one replica are foreseen', async () => {
  await using kfake = await startKfake({ brokers: 3, version: '4.3' });
  const env = { KAFKA_BROKERS: kfake.brokers.join(), KAFKA_REPLICATION_FACTOR: '1' };
  const { wrong } = await diagnose(['ingest-api'], env);
  expect(wrong).toEqual([
    expect.objectContaining({
      name: 'kafka.replicas',
      found: expect.stringContaining('topic sluice.events would have 1 replica of each partition'),
      todo: expect.stringContaining('KAFKA_REPLICATION_FACTOR=3'),
    }),
  ]);
  const { wrong: none } = await diagnose(['ingest-api'], { ...env, KAFKA_REPLICATION_FACTOR: '3' });
  expect(none).toEqual([]);
});

test.each(['append-time', 'acknowledged-time'] as const)(
  'without %s ingest-api accepts nothing, and says why',
  async (lack) => {
    await using kfake = await startKfake({ lacks: [lack] });
    await using ingest = await startIngestAlone({ kafkaBrokers: kfake.brokers, name: 'unstamped', ready: false });
    const { service } = ingest;
    const sentence = 'Kafka acknowledges records of unstamped.clock without its own time';
    await eventually(async () => (await readyz(service)).missing?.join()).toContain(sentence);
    expect(await ingest.submit('{"foreignUserGroupId":"a","events":[{"event":"e"}]}')).toBe(503);
    const attempts = async () =>
      await withAdmin(kafkaClient(kfake.brokers), async (admin) => {
        const [clock] = await admin.fetchTopicOffsets('unstamped.clock');
        return Number(clock?.high);
      });
    await eventually(attempts).toBeGreaterThan(3);
    expect(service.log().split(sentence)).toHaveLength(2);
    expect(await service.stop()).toBe(0);
  },
);

test('without times and epochs of records, and metadata of commits, a writer stores all the same, and says once what does not hold', async () => {
  await using kfake = await startKfake({
    brokers: 3,
    version: '4.3',
    lacks: ['record-time', 'leader-epoch', 'commit-metadata'],
  });
  const clickhouseUrl = inject('clickhouseUrl');
  await using pipeline = await startPipeline({ kafkaBrokers: kfake.brokers, clickhouseUrl, name: 'lackingall' });
  const events = Array.from({ length: 40 }, () => ({ event: 'e' }));
  expect((await pipeline.submit({ foreignUserGroupId: 'g', events })).status).toBe(202);
  await pipeline.settled(40);
  const sentences = [/without a time/, /without the epoch of their leader/, /does not keep the metadata/];
  const { writer } = pipeline.services;
  const warnings = async () => (await readyz(writer)).warnings ?? [];
  await eventually(warnings).toEqual(sentences.map((sentence) => expect.stringMatching(sentence)));
  for (const sentence of await warnings()) expect(writer.log().split(sentence)).toHaveLength(2);
  expect((await pipeline.submit({ foreignUserGroupId: 'g', events })).status).toBe(202);
  await pipeline.settled(80);
  await pipeline.drained();
  const env = { ...pipeline.environment, KAFKA_BROKERS: kfake.brokers.join() };
  expect(await problemsOf(env)).toMatchObject([
    { name: 'kafka.group', state: 'note', found: expect.stringContaining('all without metadata') },
    { name: 'kafka.fetched', state: 'wrong', found: expect.stringMatching(/no leader epoch.*no time/) },
  ]);
});
