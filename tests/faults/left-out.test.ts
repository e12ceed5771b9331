import { randomUUID } from 'node:crypto';
import type { LocalKafka } from '@sluice/local-stack/kafka';
import { findFreePorts } from '@sluice/local-stack/ports';
import { createKafka } from '@sluice/shared/kafka/client';
import { withAdmin } from '@sluice/shared/kafka/topics';
import { createLogger } from '@sluice/shared/log';
import type { Admin, PartitionMetadata } from 'kafkajs';
import { afterAll, beforeAll, expect, inject, test, vi } from 'vitest';
import { ownKafka } from '../support/engines.ts';
import { KAFKA_API, startKafkaProxy } from '../support/kafka-proxy.ts';
import { type KafkaRow, readRows } from '../support/kafka-rows.ts';
import { type Pipeline, startPipeline } from '../support/pipeline.ts';
import { until } from '../support/service.ts';

vi.setConfig({ testTimeout: 180_000, hookTimeout: 180_000 });

const PARTITIONS = 24;
const EVENTS = 300;

/** The broker that a proxy stands before. */
const BEHIND_PROXY = 1;

const started = new AsyncDisposableStack();
let kafka: LocalKafka;
let produceReaches = (): boolean => true;

beforeAll(async () => {
  const ports = await findFreePorts(3);
  const proxy = await startKafkaProxy(
    ports[BEHIND_PROXY] ?? 0,
    () => 'deliver',
    (api) => api !== KAFKA_API.produce || produceReaches(),
  );
  started.use(proxy);
  const advertisedPorts = ports.with(BEHIND_PROXY, proxy.port);
  kafka = started.use(await ownKafka({ brokers: 3, ports, advertisedPorts }));
});
afterAll(() => started.disposeAsync());

/** A pipeline on the three brokers, whose topics have as many replicas. */
async function start(name: string, replicas: number, env: Readonly<Record<string, string>>): Promise<Pipeline> {
  return await startPipeline({
    kafkaBrokers: kafka.brokers,
    clickhouseUrl: inject('clickhouseUrl'),
    name,
    env: { KAFKA_PARTITIONS: String(PARTITIONS), KAFKA_REPLICATION_FACTOR: String(replicas), ...env },
  });
}

async function ask<Answer>(broker: number, question: (admin: Admin) => Promise<Answer>): Promise<Answer> {
  const config = {
    KAFKA_BROKERS: [kafka.brokers[broker] ?? ''],
    KAFKA_TOPIC_PREFIX: '',
    KAFKA_PARTITIONS: 1,
    KAFKA_SSL: false,
  };
  return await withAdmin(createKafka(config, 'test', createLogger('test', 'silent')), question);
}

async function partitionsOf(topic: string, broker: number): Promise<readonly PartitionMetadata[]> {
  // kafkajs may tell nothing of a topic while one of its partitions has no leader.
  const found = await ask(broker, (admin) => admin.fetchTopicMetadata({ topics: [topic] })).catch(() => undefined);
  return found?.topics[0]?.partitions ?? [];
}

/** The node id of the leader of each partition, as a broker knows it; -1 where there is none. */
async function leadersOf(topic: string, broker: number): Promise<number[]> {
  return (await partitionsOf(topic, broker)).map(({ leader }) => leader);
}

/** Gives partitions other replicas, and waits until all of these are in sync. */
async function reassign(topic: string, replicasOf: ReadonlyMap<number, number[]>): Promise<void> {
  const partitionAssignment = [...replicasOf].map(([partition, replicas]) => ({ partition, replicas }));
  await ask(0, (admin) => admin.alterPartitionReassignments({ topics: [{ topic, partitionAssignment }] }));
  await until('the replicas to be in sync', 30_000, async () => {
    const partitions = await partitionsOf(topic, 0);
    return [...replicasOf].every(([partition, replicas]) => {
      const found = partitions.find(({ partitionId }) => partitionId === partition);
      return String(found?.replicas) === String(replicas) && found?.isr.length === replicas.length;
    });
  });
}

function eventsOf(count: number): { event: string; uuid: string; timestamp: string }[] {
  const timestamp = new Date().toISOString();
  return Array.from({ length: count }, () => ({ event: 'e', uuid: randomUUID(), timestamp }));
}

test('partitions that kafkajs leaves out of a send, their leader having moved, are sent before the 202', async () => {
  await using running = await start('leftout', 3, { PRODUCE_TIMEOUT_MS: '60000' });
  const sent: string[] = [];
  async function submit(): Promise<void> {
    const events = eventsOf(EVENTS);
    expect((await running.submit({ foreignUserGroupId: 'g', events })).status).toBe(202);
    sent.push(...events.map(({ uuid }) => uuid));
  }

  await submit();
  const leaders = await leadersOf('leftout.events', 0);
  expect(new Set(leaders).size, 'brokers that lead partitions').toBe(3);
  // The partitions of the third broker move to the two others: what ingest-api sends together goes to two brokers from
  // now on. Those that the broker behind the proxy leads go to the first one next.
  const moved = leaders.flatMap((leader, partition) => (leader === 3 ? [partition] : []));
  const towards = (first: number[], second: number[]) =>
    new Map(moved.map((partition, index) => [partition, index % 2 === 0 ? first : second]));
  await reassign('leftout.events', towards([2, 1], [1, 2]));
  await submit();
  await reassign('leftout.events', towards([2, 1, 3], [1, 2, 3]));
  // What one of the two is to get does not reach it, while the other one answers.
  let swallowed = 0;
  produceReaches = () => {
    swallowed += 1;
    return false;
  };
  const submitted = submit();
  await until('a request that does not reach the broker', 10_000, async () => swallowed > 0);
  // It leaves: its partitions move, then its connections end. kafkajs sends again, but not to brokers that have
  // answered, though they lead now.
  await kafka.stopBroker(BEHIND_PROXY);
  produceReaches = () => true;
  await submitted;
  const missingIn = (rows: readonly KafkaRow[]) =>
    new Set(sent).difference(new Set(rows.map(({ row }) => String(row['uuid']))));
  const brokers = kafka.brokers.filter((_, broker) => broker !== BEHIND_PROXY);
  const rows = await readRows(brokers, 'leftout.events', (found) => missingIn(found).size === 0);
  expect([...missingIn(rows)], 'acknowledged, and not in Kafka').toEqual([]);
  expect(await running.services['ingest-api'].stop(), 'its exit code').toBe(0);
  await kafka.restart(BEHIND_PROXY);
});

test('a submission is not answered 202 while one of its partitions has no leader', async () => {
  await using running = await start('leaderless', 1, { PRODUCE_TIMEOUT_MS: '6000' });
  expect((await running.submit({ foreignUserGroupId: 'g', events: eventsOf(EVENTS) })).status).toBe(202);
  const leaders = await leadersOf('leaderless.events', 0);
  expect(new Set(leaders).size, 'brokers that lead partitions').toBe(3);
  await kafka.kill9(1);
  await until('partitions without a leader', 30_000, async () => {
    const leaders = await leadersOf('leaderless.events', 0);
    return leaders.length === 0 || leaders.includes(-1);
  });
  const refused = await running.submit({ foreignUserGroupId: 'g', events: eventsOf(EVENTS) });
  expect(refused.status).toBe(503);
  expect(refused.headers.get('retry-after')).toMatch(/^\d+$/);
  await kafka.restart(1);
  const again = await until('a submission to be accepted', 60_000, async () => {
    const { status } = await running.submit({ foreignUserGroupId: 'g', events: eventsOf(EVENTS) });
    return status === 202 ? status : undefined;
  });
  expect(again).toBe(202);
});
