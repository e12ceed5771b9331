import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import type { LocalKafka } from '@sluice/local-stack/kafka';
import { createKafka } from '@sluice/shared/kafka/client';
import { withAdmin } from '@sluice/shared/kafka/topics';
import { createLogger } from '@sluice/shared/log';
import { afterAll, beforeAll, expect, inject, test, vi } from 'vitest';
import { ownKafka } from '../support/engines.ts';
import { freeze } from '../support/freeze.ts';
import { readRows } from '../support/kafka-rows.ts';
import { type Pipeline, startPipeline } from '../support/pipeline.ts';
import { until } from '../support/service.ts';

vi.setConfig({ testTimeout: 180_000, hookTimeout: 180_000 });

const PARTITIONS = 12;
const EVENTS = 300;

let kafka: LocalKafka & AsyncDisposable;

beforeAll(async () => {
  // A broker that is frozen loses its partitions before kafkajs gives its request up.
  kafka = await ownKafka({ brokers: 3, settings: { 'broker.session.timeout.ms': 2_500 } });
});
afterAll(() => kafka?.[Symbol.asyncDispose]());

/** A pipeline on the three brokers, whose topics have as many replicas. */
async function start(name: string, replicas: number, env: Readonly<Record<string, string>>): Promise<Pipeline> {
  return await startPipeline({
    kafkaBrokers: kafka.brokers,
    clickhouseUrl: inject('clickhouseUrl'),
    name,
    env: { KAFKA_PARTITIONS: String(PARTITIONS), KAFKA_REPLICATION_FACTOR: String(replicas), ...env },
  });
}

/** The node id of the leader of each partition, as a broker knows it; -1 where there is none. */
async function leadersOf(topic: string, broker: number): Promise<number[]> {
  const config = {
    KAFKA_BROKERS: [kafka.brokers[broker] ?? ''],
    KAFKA_TOPIC_PREFIX: '',
    KAFKA_PARTITIONS: 1,
    KAFKA_SSL: false,
  };
  const client = createKafka(config, 'test', createLogger('test', 'silent'));
  // kafkajs may tell nothing of a topic while one of its partitions has no leader.
  const found = await withAdmin(client, (admin) => admin.fetchTopicMetadata({ topics: [topic] })).catch(
    () => undefined,
  );
  return (found?.topics[0]?.partitions ?? []).map(({ leader }) => leader);
}

function eventsOf(count: number): { event: string; uuid: string; timestamp: string }[] {
  const timestamp = new Date().toISOString();
  return Array.from({ length: count }, () => ({ event: 'e', uuid: randomUUID(), timestamp }));
}

test('partitions that kafkajs leaves out of a send, their leader having moved, are sent before the 202', async () => {
  await using running = await start('leftout', 3, { PRODUCE_TIMEOUT_MS: '60000' });
  const [broken, alive] = [2, 0];
  // kafkajs connects to every broker, and learns the leaders.
  const warmUp = eventsOf(EVENTS);
  expect((await running.submit({ foreignUserGroupId: 'g', events: warmUp })).status).toBe(202);
  const leaders = await leadersOf('leftout.events', alive);
  expect(new Set(leaders).size, 'brokers that lead partitions').toBe(3);
  // The last broker takes the request and answers nothing, while the others answer theirs; its partitions move to them.
  const thaw = freeze(kafka.pids[broken] ?? 0);
  const events = eventsOf(EVENTS);
  const answer = running.submit({ foreignUserGroupId: 'g', events });
  await until('its partitions to have other leaders', 30_000, async () => {
    const now = await leadersOf('leftout.events', alive);
    return now.length === PARTITIONS && new Set(now).size === 2;
  });
  await delay(1_000);
  // Now its connection breaks: kafkajs sends again, but not to brokers that have answered, though they lead now.
  await kafka.kill9(broken);
  thaw();
  const { status } = await answer;
  expect(status).toBe(202);
  const wanted = new Set([...warmUp, ...events].map(({ uuid }) => uuid));
  const uuidsOf = (rows: readonly { row: Readonly<Record<string, unknown>> }[]) =>
    new Set(rows.map(({ row }) => String(row['uuid'])));
  const rows = await readRows(
    [kafka.brokers[alive] ?? ''],
    'leftout.events',
    (found) => uuidsOf(found).size >= wanted.size,
  );
  expect([...wanted.difference(uuidsOf(rows))], 'acknowledged, and not in Kafka').toEqual([]);
  await kafka.restart(broken);
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
