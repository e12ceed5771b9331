import { findFreePorts } from '@sluice/local-stack/ports';
import { loadConfig } from '@sluice/shared/config';
import { createKafka } from '@sluice/shared/kafka/client';
import { createLogger } from '@sluice/shared/log';
import { configSchema } from '@sluice/writer/config';
import type { Admin } from 'kafkajs';
import { expect, inject, test, vi } from 'vitest';
import { ownKafka } from '../support/engines.ts';
import { KAFKA_API, startKafkaProxy } from '../support/kafka-proxy.ts';
import { startPipeline } from '../support/pipeline.ts';
import { type Service, until } from '../support/service.ts';
import { startStatementProxy } from '../support/statement-proxy.ts';

vi.setConfig({ testTimeout: 180_000 });

const TOPIC = 'late.events';
const EVENTS = 10_000;

const joins = (writer: Service) => writer.log().split('"joined the consumer group"').length - 1;

/** The partitions of a topic by their leaders. */
async function leaders(admin: Admin, topic: string): Promise<Map<number, number[]>> {
  const { topics } = await admin.fetchTopicMetadata({ topics: [topic] });
  const partitions = topics[0]?.partitions ?? [];
  const grouped = Map.groupBy(partitions, ({ leader }) => leader);
  return new Map([...grouped].map(([leader, found]) => [leader, found.map(({ partitionId }) => partitionId)]));
}

async function committed(admin: Admin): Promise<Map<number, string>> {
  const [topic] = await admin.fetchOffsets({ groupId: 'late-writer', topics: [TOPIC] });
  return new Map(topic?.partitions.map(({ partition, offset }) => [partition, offset]));
}

test('what one broker answers after another has made the writer join anew is not stored: it is another writer’s now', async () => {
  await using cleanup = new AsyncDisposableStack();
  const ports = await findFreePorts(3);
  /** The broker whose next large answer is held, by its number from 1. */
  let slow: number | undefined;
  const held = Promise.withResolvers<void>();
  const release = Promise.withResolvers<void>();
  const advertisedPorts: number[] = [];
  for (const [index, port] of ports.entries()) {
    const proxy = await startKafkaProxy(port, (api, bytes) => {
      if (api !== KAFKA_API.fetch || slow !== index + 1 || bytes < 100_000) return 'deliver';
      slow = undefined;
      held.resolve();
      return { until: release.promise };
    });
    cleanup.use(proxy);
    advertisedPorts.push(proxy.port);
  }
  cleanup.use(await ownKafka({ brokers: 3, ports, advertisedPorts }));

  // Inserts of events wait for one another, so that they run side by side wherever they may.
  let barrier = false;
  let waiting = 0;
  const bothWait = Promise.withResolvers<void>();
  const clickhouse = await startStatementProxy(inject('clickhouseUrl'), async (name, moment) => {
    if (!barrier || name !== 'store-events' || moment !== 'before') return 'go on';
    waiting += 1;
    if (waiting >= 2) bothWait.resolve();
    await bothWait.promise;
    return 'go on';
  });
  cleanup.use(clickhouse);
  const kafkaBrokers = advertisedPorts.map((port) => `127.0.0.1:${port}`);
  const running = cleanup.use(
    await startPipeline({
      kafkaBrokers,
      clickhouseUrl: clickhouse.url,
      name: 'late',
      // No heartbeat tells the writer of the other one: a leader that has moved does.
      env: {
        KAFKA_SESSION_TIMEOUT_MS: '120000',
        KAFKA_REPLICATION_FACTOR: '1',
        STATEMENT_TIMEOUT_MS: '20000',
        ERASURE_DELAY_MS: '20001',
      },
    }),
  );
  const config = loadConfig(configSchema, { KAFKA_BROKERS: kafkaBrokers.join(','), CLICKHOUSE_URL: clickhouse.url });
  const admin = createKafka(config, 'test', createLogger('test', 'silent')).admin();
  await admin.connect();
  cleanup.defer(() => admin.disconnect());

  const { writer } = running.services;
  writer.freeze();
  for (let sent = 0; sent < EVENTS; sent += 500) {
    const body = { foreignUserGroupId: 'g', events: Array(500).fill({ event: 'e' }) };
    expect((await running.submit(body)).status).toBe(202);
  }
  const [slowBroker = 0, quickBroker = 0] = (await leaders(admin, TOPIC)).keys();
  slow = slowBroker;
  writer.thaw();
  await held.promise;
  const ofSlow = (await leaders(admin, TOPIC)).get(slowBroker) ?? [];
  expect(ofSlow.length).toBeGreaterThan(1);
  await until('all others to be stored', 30_000, async () => {
    const ends = await admin.fetchTopicOffsets(TOPIC);
    const offsets = await committed(admin);
    return ends.every(({ partition, high }) => ofSlow.includes(partition) || offsets.get(partition) === high);
  });

  const other = running.startAnother('writer');
  await until('the other writer to join', 30_000, async () => {
    const { groups } = await admin.describeGroups(['late-writer']);
    return groups[0]?.state === 'PreparingRebalance';
  });
  barrier = true;
  const [moved = 0] = (await leaders(admin, 'late.entities')).get(quickBroker) ?? [];
  const target = [1, 2, 3].find((node) => node !== slowBroker && node !== quickBroker) ?? 0;
  await admin.alterPartitionReassignments({
    topics: [{ topic: 'late.entities', partitionAssignment: [{ partition: moved, replicas: [target] }] }],
  });
  await until('the writer to join anew', 30_000, async () => joins(writer) >= 2);
  await until('an insert of the other writer', 30_000, async () => waiting > 0);
  release.resolve();
  // A second insert comes at once, or never.
  setTimeout(bothWait.resolve, 5_000);
  await other;
  await running.drained();
  await running.settled(EVENTS);
});
