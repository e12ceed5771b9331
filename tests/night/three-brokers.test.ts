// The faults that need a cluster. All tests use the same three brokers, with a proxy in front of each, and leave them
// running.

import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { deadLettersConfig, parse, runDeadLettersCommand } from '@sluice/cli/dead-letters/dead-letters-command';
import type { LocalKafka } from '@sluice/local-stack/kafka';
import { createLogger } from '@sluice/shared/base/log';
import { createClickHouse } from '@sluice/shared/clickhouse/client';
import { loadConfig } from '@sluice/shared/config';
import { createKafka } from '@sluice/shared/kafka/client';
import { TopicDurability } from '@sluice/shared/kafka/topic-durability';
import { ensureTopics } from '@sluice/shared/kafka/topics';
import { eventually } from '@sluice/shared/testing/eventually';
import { explain, until } from '@sluice/shared/testing/until';
import { DeadLetters } from '@sluice/storage/dead-letters';
import kafkajs from 'kafkajs';
import { afterAll, afterEach, beforeAll, describe, expect, inject, onTestFinished, test } from 'vitest';
import { startIngestAlone } from '../kit/ingest-alone.ts';
import { KAFKA_API } from '../kit/kafka-proxy.ts';
import { type KafkaRow, readRows } from '../kit/kafka-rows.ts';
import { startLoad } from '../kit/load.ts';
import { readMetric } from '../kit/metrics.ts';
import { type Pipeline, startPipeline } from '../kit/pipeline.ts';
import type { Service } from '../kit/service.ts';
import { startStatementProxy } from '../kit/statement-proxy.ts';
import { BROKERS, ThreeBrokers } from '../kit/three-brokers.ts';
import { submissionToBoth, uuidInPartition } from '../kit/uuid-in-partition.ts';
import { expectExactlyOnce } from '../kit/verify-delivery.ts';

const BODY = '{"foreignUserGroupId":"a","events":[{"event":"e"}]}';

const clickhouseUrl = inject('clickhouseUrl');
let cluster: ThreeBrokers;
let kafka: LocalKafka;

beforeAll(async () => {
  cluster = await ThreeBrokers.start();
  kafka = cluster.kafka;
});
afterEach(() => cluster?.repair());
afterAll(() => cluster?.[Symbol.asyncDispose]());

/** The node id of the leader of each partition, -1 where there is none. */
async function leadersOf(topic: string): Promise<number[]> {
  return (await cluster.partitionsOf(topic)).map(({ leader }) => leader);
}

function withoutLeader(ingest: Service): Promise<number> {
  return readMetric(ingest, 'sluice_ingest_leaderless_partitions');
}

/**
 * Stores a dead letter, and returns a function that replays it. Kafka acknowledges the replay when all three brokers have
 * it.
 */
async function startReplay(running: Pipeline): Promise<() => Promise<{ code: number; output: string[] }>> {
  const topic = 'replicated';
  const configEntries = [{ name: 'min.insync.replicas', value: '3' }];
  await cluster.withAdminOf(0, (admin) =>
    admin.createTopics({ waitForLeaders: true, topics: [{ topic, replicationFactor: 3, configEntries }] }),
  );
  const config = loadConfig(deadLettersConfig, running.environment);
  const client = createClickHouse(config, { application: 'test', requestTimeoutMs: 10_000, connectionsMax: 1 });
  onTestFinished(() => client.close());
  const place = { kind: 'events', format: '1', topic, partition: 0, offset: 0, line: 0 };
  await client.insert({ table: 'dead_letters', values: [{ ...place, id: 'row', row: '{}' }], format: 'JSONEachRow' });
  const deadLetters = new DeadLetters(config, client, createKafka(config, 'test', createLogger('test', 'silent')));
  return async () => {
    const output: string[] = [];
    const code = await runDeadLettersCommand(parse(['replay', 'row']), deadLetters, (line) => output.push(line));
    return { code, output };
  };
}

test('rows are sent to the broker that leads their partition, and to no other', async () => {
  await using ingest = await startIngestAlone({
    kafkaBrokers: kafka.brokers,
    name: 'led',
    env: { KAFKA_REPLICATION_FACTOR: '1' },
  });
  const submitMany = () => Promise.all(Array.from({ length: 60 }, () => ingest.submit(BODY)));
  const refusals = () => ingest.service.log().split('sending to Kafka failed').length - 1;
  // A broker that has not learned yet that it leads a new partition refuses rows, too.
  expect(new Set(await submitMany())).toEqual(new Set([202]));
  const before = refusals();
  for (let round = 0; round < 3; round += 1) expect(new Set(await submitMany())).toEqual(new Set([202]));
  expect(refusals()).toBe(before);
});

test('rows that only their leader has, or can have, are refused, and accepted once two brokers have them', async () => {
  const TOPIC = 'alone.events';
  await using running = await cluster.startPipeline('alone', 3, { KAFKA_PARTITIONS: '2', PRODUCE_TIMEOUT_MS: '4000' });
  const ingestLog = () => running.services['ingest-api'].log().slice(-4_000);
  const submit = async (body: object) => (await running.submit(body)).status;
  expect(await submit(submissionToBoth())).toBe(202);

  // The brokers run, and get nothing from one another. Were only the responses lost, a replica that asks would be in sync again:
  // it has all that is committed, since nothing is committed that fewer than two brokers have.
  cluster.reaches = (_broker, api, clientId) => api !== KAFKA_API.fetch || !clientId.startsWith('broker-');
  const cutOff = submissionToBoth();
  expect(await submit(cutOff)).toBe(503);
  let last = '';
  await until('leaders to be alone in sync', async () => {
    // A replica that lacks nothing is in sync, also of a leader that has moved meanwhile: on a busy machine it may.
    expect(await submit(cutOff)).toBe(503);
    const partitions = await cluster.partitionsOf(TOPIC);
    last = JSON.stringify(partitions);
    return partitions.length === 2 && partitions.every(({ isr }) => isr.length === 1);
  }).catch(explain(() => `The partitions are ${last}; ingest-api's log ends with ${ingestLog()}`));
  expect(await submit(cutOff)).toBe(503);
  cluster.reachAll();
  await until('the submission to be accepted', async () => (await submit(cutOff)) === 202);

  const [leader = 0] = (await cluster.partitionsOf(TOPIC)).map((partition) => partition.leader - 1);
  await kafka.kill9(leader);
  await running.settled(4);
  const follower = BROKERS.find((broker) => broker !== leader) ?? 0;
  await kafka.kill9(follower);
  const left = submissionToBoth();
  expect(await submit(left)).toBe(503);
  // A start ends once all brokers have joined.
  await Promise.all([leader, follower].map((broker) => kafka.restart(broker)));
  await until('the submission to be accepted', async () => (await submit(left)) === 202);
  await running.settled(6);
});

describe('a leader that moves, or dies, during a send', () => {
  const EVENTS = 300;
  const env = { KAFKA_PARTITIONS: '24' };
  /** The broker that requests do not get to. */
  const UNREACHED = 1;

  function eventsOf(count: number): { event: string; uuid: string; timestamp: string }[] {
    const timestamp = new Date().toISOString();
    return Array.from({ length: count }, () => ({ event: 'e', uuid: randomUUID(), timestamp }));
  }

  /** Moves partitions to other replicas, and waits until all of these are in sync. */
  async function reassign(topic: string, replicasOf: ReadonlyMap<number, number[]>): Promise<void> {
    const partitionAssignment = [...replicasOf].map(([partition, replicas]) => ({ partition, replicas }));
    await cluster.withAdminOf(0, (admin) =>
      admin.alterPartitionReassignments({ topics: [{ topic, partitionAssignment }] }),
    );
    await until('the replicas to be in sync', async () => {
      const partitions = await cluster.partitionsOf(topic);
      return [...replicasOf].every(([partition, replicas]) => {
        const found = partitions.find(({ partitionId }) => partitionId === partition);
        return String(found?.replicas) === String(replicas) && found?.isr.length === replicas.length;
      });
    });
  }

  test('partitions whose leader moves while they are being sent are sent to the new one before the 202', async () => {
    await using running = await cluster.startPipeline('leftout', 3, { ...env, PRODUCE_TIMEOUT_MS: '60000' });
    const sent: string[] = [];
    async function submit(): Promise<void> {
      const events = eventsOf(EVENTS);
      expect((await running.submit({ foreignUserGroupId: 'g', events })).status).toBe(202);
      sent.push(...events.map(({ uuid }) => uuid));
    }

    await submit();
    const leaders = await leadersOf('leftout.events');
    expect(new Set(leaders).size, 'brokers that lead partitions').toBe(3);
    // The partitions of the third broker move to the two others, so ingest-api now sends to two brokers. If the broker
    // that requests do not get to leaves, the first one leads its partitions.
    const moved = leaders.flatMap((leader, partition) => (leader === 3 ? [partition] : []));
    const towards = (first: number[], second: number[]) =>
      new Map(moved.map((partition, index) => [partition, index % 2 === 0 ? first : second]));
    await reassign('leftout.events', towards([2, 1], [1, 2]));
    await submit();
    await reassign('leftout.events', towards([2, 1, 3], [1, 2, 3]));
    // One of the two brokers does not get its part of the next send, and the other responds.
    let swallowed = 0;
    cluster.reaches = (broker, api) => {
      if (broker !== UNREACHED || api !== KAFKA_API.produce) return true;
      swallowed += 1;
      return false;
    };
    const submitted = submit();
    await until('a request that does not get to the broker', async () => swallowed > 0);
    // The broker leaves: its partitions move, then its connections end.
    await kafka.stopBroker(UNREACHED);
    cluster.reachAll();
    await submitted;
    const missingIn = (rows: readonly KafkaRow[]) =>
      new Set(sent).difference(new Set(rows.map(({ row }) => String(row['uuid']))));
    const brokers = kafka.brokers.filter((_, broker) => broker !== UNREACHED);
    const rows = await readRows(brokers, 'leftout.events', (found) => missingIn(found).size === 0);
    expect([...missingIn(rows)], 'acknowledged, and not in Kafka').toEqual([]);
    expect(await running.services['ingest-api'].stop(), 'its exit code').toBe(0);
    await kafka.restart(UNREACHED);
  });

  test('a submission is not answered 202 while one of its partitions has no leader', async () => {
    await using running = await cluster.startPipeline('noleader', 1, { ...env, PRODUCE_TIMEOUT_MS: '6000' });
    const submit = () => running.submit({ foreignUserGroupId: 'g', events: eventsOf(EVENTS) });
    expect((await submit()).status).toBe(202);
    expect(new Set(await leadersOf('noleader.events')).size, 'brokers that lead partitions').toBe(3);
    await kafka.kill9(1);
    await until('partitions without a leader', async () => {
      const leaders = await leadersOf('noleader.events');
      return leaders.length === 0 || leaders.includes(-1);
    });
    const refused = await submit();
    expect(refused.status).toBe(503);
    expect(refused.headers.get('retry-after')).toMatch(/^\d+$/);
    await kafka.restart(1);
    await until('a submission to be accepted', async () => (await submit()).status === 202);
  });
});

test('while two of six partitions have no leader, the submissions of the others are accepted, and do not wait', async () => {
  await using ingest = await startIngestAlone({
    kafkaBrokers: kafka.brokers,
    name: 'leaderless',
    env: { KAFKA_REPLICATION_FACTOR: '1', PRODUCE_TIMEOUT_MS: '5000' },
  });
  expect(await ingest.submit(BODY)).toBe(202);
  await kafka.kill9(2);
  for (const phase of ['the broker has just died', 'the partitions have no leader']) {
    const durationsMs = new Map<number, number[]>([
      [202, []],
      [503, []],
    ]);
    await Promise.all(
      Array.from({ length: 120 }, async () => {
        const startedAt = performance.now();
        const status = await ingest.submit(BODY);
        durationsMs.get(status)?.push(performance.now() - startedAt);
      }),
    );
    const [accepted = [], refused = []] = [...durationsMs.values()].map((found) => found.toSorted((a, b) => a - b));
    expect(accepted.length + refused.length, phase).toBe(120);
    expect(accepted.length, phase).toBeGreaterThan(55);
    // Requests that wait for the partitions without a leader are refused after PRODUCE_TIMEOUT_MS; the others are done by
    // then.
    expect(accepted[Math.floor(accepted.length / 2)], phase).toBeLessThan(refused[0] ?? 0);
    await eventually(() => withoutLeader(ingest.service)).toBe(4);
  }
  const response = await fetch(`${ingest.service.url}/readyz`);
  expect([response.status, await response.text()]).toMatchObject([200, expect.anything()]);
  await kafka.restart(2);
  await eventually(async () => await Promise.all(Array.from({ length: 30 }, () => ingest.submit(BODY)))).toEqual(
    Array(30).fill(202),
  );
});

test('partitions that lack replicas do not delay the others of their broker, and are accepted once they have them', async () => {
  const partitions = 4;
  // One broker leads all. Half of them have their second replica on a broker that will be away.
  const replicaAssignment = Array.from({ length: partitions }, (_, partition) => ({
    partition,
    replicas: [1, partition < partitions / 2 ? 2 : 3],
  }));
  const configEntries = [
    { name: 'message.timestamp.type', value: 'LogAppendTime' },
    { name: 'min.insync.replicas', value: '2' },
  ];
  const topics = ['underreplicated.events', 'underreplicated.entities'];
  await cluster.withAdminOf(0, (admin) =>
    admin.createTopics({ topics: topics.map((topic) => ({ topic, replicaAssignment, configEntries })) }),
  );
  await using ingest = await startIngestAlone({
    kafkaBrokers: kafka.brokers,
    name: 'underreplicated',
    env: { KAFKA_PARTITIONS: String(partitions), PRODUCE_TIMEOUT_MS: '6000' },
  });
  const submitTo = (isSick: (partition: number) => boolean) => {
    const uuid = uuidInPartition(partitions, isSick);
    return ingest.submit(JSON.stringify({ foreignUserGroupId: 'a', events: [{ event: 'e', uuid }] }));
  };
  const toHealthy = () => submitTo((partition) => partition < partitions / 2);
  const toSick = () => submitTo((partition) => partition >= partitions / 2);
  expect(await Promise.all([toHealthy(), toSick()])).toEqual([202, 202]);
  await kafka.kill9(2);
  await until('the others to lack replicas', async () => (await toSick()) === 503);
  const statuses: number[] = [];
  let isDone = false;
  const waiting = Promise.all(Array.from({ length: 8 }, toSick)).finally(() => {
    isDone = true;
  });
  const clients = Array.from({ length: 4 }, async () => {
    while (!isDone) statuses.push(await toHealthy());
  });
  expect(new Set(await waiting)).toEqual(new Set([503]));
  await Promise.all(clients);
  expect(new Set(statuses)).toEqual(new Set([202]));
  // Had they been sent with the others, each client would have got an answer or two.
  expect(statuses.length).toBeGreaterThan(4 * clients.length);
  await kafka.restart(2);
  await until('all to be accepted', async () => (await toSick()) === 202);
  expect(await readMetric(ingest.service, 'sluice_ingest_failing_partitions')).toBeLessThan(partitions / 2);
});

test('new topics of rows acknowledge what two brokers have, also where the brokers decide on three replicas', async () => {
  for (const [prefix, replicas, inSyncMin] of [
    ['ofbrokers.', undefined, 2],
    ['ofthree.', 3, 2],
    ['oftwo.', 2, 1],
  ] as const) {
    const replication = replicas === undefined ? {} : { KAFKA_REPLICATION_FACTOR: replicas };
    const brokers = { KAFKA_BROKERS: [...kafka.brokers], KAFKA_SSL: false };
    const config = { ...brokers, ...replication, KAFKA_TOPIC_PREFIX: prefix, KAFKA_PARTITIONS: 1 };
    const logger = createLogger('test', 'silent');
    const client = createKafka(config, 'test', logger);
    await ensureTopics(client, config);
    const durability = new TopicDurability(client, [`${prefix}events`, `${prefix}entities`], logger);
    const found = async () => {
      await durability.check();
      return durability.found?.topics.map((topic) => [topic.replicas, topic.inSyncMin]);
    };
    const expected = [replicas ?? 3, inSyncMin];
    await eventually(found).toEqual([expected, expected]);
  }
});

test('topics with which a 202 may rest on one broker are named, with what to do, until an operator has changed them', async () => {
  const topics = ['weak.events', 'weak.entities'] as const;
  const STAMPED = { name: 'message.timestamp.type', value: 'LogAppendTime' };
  await cluster.withAdminOf(0, (admin) =>
    admin.createTopics({
      topics: topics.map((topic, index) => ({
        topic,
        numPartitions: 2,
        replicationFactor: index === 0 ? 3 : 1,
        configEntries: [STAMPED],
      })),
    }),
  );
  await using running = await cluster.startPipeline('weak', 3, { KAFKA_PARTITIONS: '2' });
  const ofEvents =
    'topic weak.events has 3 replicas of each partition and min.insync.replicas=1: ' +
    'a 202 may rest on one broker; set it to 2 (docs/operate/durability.md#kafka says how)';
  const ofEntities =
    'topic weak.entities has 1 replica of each partition: a 202 may rest on one broker; ' +
    'give it 3 replicas and min.insync.replicas=2 (docs/operate/durability.md#kafka says how)';
  for (const service of [running.services['ingest-api'], running.services.writer]) {
    await eventually(async () => await (await fetch(`${service.url}/readyz`)).json()).toEqual({
      status: 'ok',
      warnings: [ofEvents, ofEntities],
    });
    expect(service.log()).toContain(ofEvents);
  }
  const metrics = await (await fetch(`${running.services.writer.url}/metrics`)).text();
  expect(metrics).toMatch(/^sluice_kafka_brokers 3$/m);
  expect(metrics).toMatch(/^sluice_topic_replicas\{topic="weak.entities"\} 1$/m);
  expect(metrics).toMatch(/^sluice_topic_min_insync_replicas\{topic="weak.events"\} 1$/m);

  const lines: string[] = [];
  const logger = createLogger('test', 'warn', { write: (line) => void lines.push(JSON.parse(line).msg) });
  const brokers = { KAFKA_BROKERS: [...kafka.brokers], KAFKA_TOPIC_PREFIX: '', KAFKA_PARTITIONS: 1, KAFKA_SSL: false };
  const durability = new TopicDurability(createKafka(brokers, 'test', logger), topics, logger);
  for (let look = 0; look < 2; look += 1) await durability.check();
  expect(lines).toEqual([ofEvents, ofEntities]);
  const configEntries = [STAMPED, { name: 'min.insync.replicas', value: '2' }];
  const resources = [{ type: kafkajs.ConfigResourceTypes.TOPIC, name: 'weak.events', configEntries }];
  await cluster.withAdminOf(0, (admin) => admin.alterConfigs({ validateOnly: false, resources }));
  await eventually(async () => {
    await durability.check();
    return durability.warnings;
  }).toEqual([ofEntities]);
  expect(lines).toHaveLength(2);
});

test('while partitions have no leader, a writer that starts stores the others, and those once they have one', async () => {
  await using running = await cluster.startPipeline('leaderlesswriter', 1, { PRODUCE_TIMEOUT_MS: '5000' });
  const accepted = async (count: number) => {
    const statuses = await Promise.all(Array.from({ length: count }, async () => (await running.submit(BODY)).status));
    return statuses.filter((status) => status === 202).length;
  };
  // A topic that is none of ours, and that nobody leads while its only broker is away.
  const replicaAssignment = [{ partition: 0, replicas: [3] }];
  await cluster.withAdminOf(0, (admin) => admin.createTopics({ topics: [{ topic: 'unrelated', replicaAssignment }] }));
  const replay = await startReplay(running);
  const before = await accepted(60);
  await running.services.writer.kill9();
  const unstored = await accepted(60);
  await kafka.kill9(2);
  await eventually(() => withoutLeader(running.services['ingest-api'])).toBe(4);
  await running.restart('writer');
  const total = async () => (await running.get<{ total: number }>('/events?limit=0')).body.total;
  // The killed writer has to leave the group first, and the broker that coordinates it may be the one that is away.
  await until('more than half to be stored', async () => (await total()) > (before + unstored) / 2);
  const during = await accepted(60);
  expect(await replay()).toEqual({ code: 1, output: [expect.stringMatching(/^row was not replayed: ./)] });
  await kafka.restart(2);
  // Not before all three brokers have it.
  await eventually(replay).toEqual({ code: 0, output: ['row replayed'] });
  await running.settled(before + unstored + during);
});

test('with every row on at least two brokers, the loss of any one of them loses and doubles nothing, and ingest goes on', async () => {
  await using running = await cluster.startPipeline('brokers', 3);
  await using load = startLoad({ pipeline: running, urls: () => [running.services['ingest-api'].url], concurrency: 8 });
  for (const broker of BROKERS) {
    await delay(1_000);
    await kafka.kill9(broker);
    const before = load.acceptedSoFar();
    await eventually(load.acceptedSoFar).toBeGreaterThan(before + 200);
    await kafka.restart(broker);
  }
  await expectExactlyOnce(running, clickhouseUrl, await load.stop());
});

test('a response of one broker that comes after another has made the writer join again is not stored: its partitions have another owner', async () => {
  const [topic, EVENTS] = ['late.events', 10_000];
  const groupId = 'late-writer';
  await using cleanup = new AsyncDisposableStack();

  // Inserts of events wait for one another, so that they run side by side wherever they may.
  let barrier = false;
  let waiting = 0;
  const bothWait = Promise.withResolvers<void>();
  const clickhouse = await startStatementProxy(clickhouseUrl, async (name, moment) => {
    if (!barrier || name !== 'store-events' || moment !== 'before') return;
    waiting += 1;
    if (waiting >= 2) bothWait.resolve();
    await bothWait.promise;
  });
  cleanup.use(clickhouse);
  const running = cleanup.use(
    await startPipeline({
      kafkaBrokers: kafka.brokers,
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
  const admin = createKafka(
    { KAFKA_BROKERS: [...kafka.brokers], KAFKA_TOPIC_PREFIX: '', KAFKA_PARTITIONS: 1, KAFKA_SSL: false },
    'test',
    createLogger('test', 'silent'),
  ).admin();
  await admin.connect();
  cleanup.defer(() => admin.disconnect());

  /** The partitions of a topic by the node id of their leaders. */
  async function partitionsByLeader(name: string): Promise<Map<number, number[]>> {
    const grouped = Map.groupBy(await cluster.partitionsOf(name), ({ leader }) => leader);
    return new Map([...grouped].map(([leader, found]) => [leader, found.map(({ partitionId }) => partitionId)]));
  }

  const { writer } = running.services;
  const joins = () => writer.log().split('"joined the consumer group"').length - 1;
  writer.freeze();
  for (let sent = 0; sent < EVENTS; sent += 500) {
    const body = { foreignUserGroupId: 'g', events: Array(500).fill({ event: 'e' }) };
    expect((await running.submit(body)).status).toBe(202);
  }
  const [slowNode = 0, quickNode = 0] = (await partitionsByLeader(topic)).keys();
  const held = Promise.withResolvers<void>();
  const release = Promise.withResolvers<void>();
  // The next large response of the slow broker to a fetch is held.
  cluster.decide = (broker, api, bytes, clientId) => {
    if (api !== KAFKA_API.fetch || broker + 1 !== slowNode || bytes < 100_000 || clientId !== 'sluice-writer') {
      return 'deliver';
    }
    cluster.deliverAll();
    held.resolve();
    return { until: release.promise };
  };
  writer.thaw();
  await held.promise;
  const ofSlow = (await partitionsByLeader(topic)).get(slowNode) ?? [];
  expect(ofSlow.length).toBeGreaterThan(1);
  await until('all others to be stored', async () => {
    const ends = await admin.fetchTopicOffsets(topic);
    const [found] = await admin.fetchOffsets({ groupId, topics: [topic] });
    const committed = new Map(found?.partitions.map(({ partition, offset }) => [partition, offset]));
    return ends.every(({ partition, high }) => ofSlow.includes(partition) || committed.get(partition) === high);
  });

  const other = running.startAnother('writer');
  await until('the other writer to join', async () => {
    const { groups } = await admin.describeGroups([groupId]);
    return groups[0]?.state === 'PreparingRebalance';
  });
  barrier = true;
  const [moved = 0] = (await partitionsByLeader('late.entities')).get(quickNode) ?? [];
  const target = [1, 2, 3].find((node) => node !== slowNode && node !== quickNode) ?? 0;
  await admin.alterPartitionReassignments({
    topics: [{ topic: 'late.entities', partitionAssignment: [{ partition: moved, replicas: [target] }] }],
  });
  await until('the writer to join again', async () => joins() >= 2);
  await until('an insert of the other writer', async () => waiting > 0);
  release.resolve();
  // A second insert comes at once, or never.
  setTimeout(bothWait.resolve, 5_000);
  await other;
  await running.drained();
  await running.settled(EVENTS);
});
