import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { createLogger } from '@sluice/shared/base/log';
import type { KafkaConfig } from '@sluice/shared/config';
import { createKafka } from '@sluice/shared/kafka/client';
import { until } from '@sluice/shared/testing/until';
import type { Kafka } from 'kafkajs';
import { installBrokers } from '../kafka/install-brokers.ts';
import type { NewRecord } from '../kafka/partition-log.ts';
import type { FetchRequest, SimulatedKafka as Simulated } from '../kafka/simulated-kafka.ts';
import { SimulatedKafka } from '../kafka/simulated-kafka.ts';
import { Network } from '../world/network.ts';
import { Random } from '../world/random.ts';
import { VirtualTime } from '../world/virtual-time.ts';
import { driven } from './driven.ts';

type Topics<Partition> = readonly { readonly topic: string; readonly partitions: readonly Partition[] }[];

interface Membership {
  readonly groupId: string;
  readonly memberId: string;
}

/** kafkajs's connection to a broker, as far as the simulator puts its own in place of it. */
export interface BrokerConnection {
  metadata(topics: readonly string[]): Promise<ReturnType<Simulated['metadata']>>;
  fetch(
    request: FetchRequest & {
      readonly isolationLevel: number;
      readonly minBytes: number;
      readonly keepErrors?: boolean;
    },
  ): ReturnType<Simulated['fetch']>;
  produce(request: {
    readonly acks: number;
    readonly timeout: number;
    readonly keepErrors?: boolean;
    readonly topicData: Topics<{ readonly partition: number; readonly messages: readonly NewRecord[] }>;
  }): Promise<{ readonly topics: readonly { readonly partitions: readonly ProducedPartition[] }[] }>;
  createTopics(request: {
    readonly topics: readonly { readonly topic: string; readonly numPartitions: number }[];
  }): Promise<unknown>;
  listOffsets(request: {
    readonly isolationLevel: number;
    readonly topics: Topics<{ readonly partition: number; readonly timestamp: number }>;
  }): Promise<ReturnType<Simulated['listOffsets']>>;
  joinGroup(
    request: Membership & {
      readonly sessionTimeout: number;
      readonly rebalanceTimeout: number;
      readonly groupProtocols: readonly { readonly name: string; readonly metadata: Buffer }[];
    },
  ): Promise<{
    readonly generationId: number;
    readonly leaderId: string;
    readonly memberId: string;
    readonly members: readonly { readonly memberId: string }[];
  }>;
  syncGroup(
    request: Membership & {
      readonly generationId: number;
      readonly groupAssignment: readonly { readonly memberId: string; readonly memberAssignment: Buffer }[];
    },
  ): Promise<{ readonly memberAssignment: Buffer }>;
  heartbeat(request: Membership & { readonly groupGenerationId: number }): Promise<unknown>;
  leaveGroup(request: Membership): Promise<unknown>;
  offsetCommit(
    request: Membership & {
      readonly groupGenerationId: number;
      readonly topics: Topics<{ readonly partition: number; readonly offset: string; readonly metadata?: string }>;
    },
  ): Promise<unknown>;
  offsetFetch(request: { readonly groupId: string; readonly topics: Topics<{ readonly partition: number }> }): Promise<{
    readonly responses: readonly {
      readonly partitions: readonly { readonly offset: string; readonly metadata: string | null }[];
    }[];
  }>;
  describeGroups(request: {
    readonly groupIds: readonly string[];
  }): Promise<{ readonly groups: readonly { readonly members: readonly { readonly memberId: string }[] }[] }>;
}

interface ProducedPartition {
  readonly partition: number;
  readonly errorCode: number;
  readonly baseOffset: string;
}

interface Cluster {
  connect(): Promise<void>;
  disconnect(): Promise<void>;
  refreshMetadata(): Promise<void>;
  findControllerBroker(): Promise<BrokerConnection>;
}

/** A Kafka of one broker that a contract is tried on: a real one, or that of the simulator. */
export interface KafkaEngine extends AsyncDisposable {
  /** A topic of two partitions, for this contract alone. */
  readonly topic: string;
  /** For this contract alone. */
  readonly groupId: string;
  /** Opens another connection to the broker. A broker serves the requests of one connection one after the other. */
  connect(): Promise<BrokerConnection>;
  /** Retention deletes the records before an offset. */
  deleteRecords(partition: number, before: number): Promise<void>;
  /** Kafka forgets the group, which has no members. */
  forgetGroup(): Promise<void>;
  sleep(ms: number): Promise<void>;
  /** Milliseconds since some time. */
  now(): number;
  /** Runs work that uses the engine. */
  run<Result>(work: () => Promise<Result>): Promise<Result>;
}

export async function realKafka(brokers: readonly string[]): Promise<KafkaEngine> {
  await using opened = new AsyncDisposableStack();
  const kafka = clientOf(brokers);
  const [topic, groupId] = [`contract.${randomUUID()}`, randomUUID()];
  const admin = kafka.admin();
  await admin.connect();
  opened.defer(() => admin.disconnect());
  await admin.createTopics({ topics: [{ topic, numPartitions: 2 }], waitForLeaders: false });
  opened.defer(() => admin.deleteTopics({ topics: [topic] }));
  // The partitions have leaders, and the group a coordinator, only after a while.
  await until('leaders and a coordinator', async () => {
    const offsets = await admin.fetchTopicOffsets(topic).catch(() => []);
    const committed = await admin.fetchOffsets({ groupId, topics: [topic] }).catch(() => []);
    return offsets.length === 2 && committed.length === 1;
  });
  const kept = opened.move();
  return {
    ...{ topic, groupId },
    connect: () => connect(kafka, kept),
    async deleteRecords(partition, before) {
      await admin.deleteTopicRecords({ topic, partitions: [{ partition, offset: String(before) }] });
    },
    async forgetGroup() {
      await admin.deleteGroups([groupId]);
    },
    sleep: (ms) => delay(ms),
    now: () => performance.now(),
    run: (work) => work(),
    [Symbol.asyncDispose]: () => kept.disposeAsync(),
  };
}

/** While it is there, kafkajs talks to it alone. */
export function simulatedKafka(seed: number): KafkaEngine {
  const time = new VirtualTime(new Random(seed, 'programs').next);
  const network = new Network(time, new Random(seed, 'network'));
  const [topic, groupId] = ['contract', 'group'];
  const random = new Random(seed, 'servers');
  const simulated = new SimulatedKafka({ time, network, random, nodes: 1, topics: { [topic]: 2 } });
  const uninstall = installBrokers(simulated);
  const kafka = clientOf(['kafka-1:9092']);
  const opened = new AsyncDisposableStack();
  return {
    ...{ topic, groupId },
    connect: () => connect(kafka, opened),
    async deleteRecords(partition, before) {
      simulated.log(topic, partition)?.deleteBefore(before);
    },
    forgetGroup: async () => simulated.group(groupId).forget(),
    sleep: (ms) => time.wait(ms),
    now: () => time.nowMs,
    run: (work) => driven(time, work),
    async [Symbol.asyncDispose]() {
      await opened.disposeAsync();
      uninstall();
    },
  };
}

function clientOf(brokers: readonly string[]): Kafka {
  const config = { KAFKA_BROKERS: brokers, KAFKA_SSL: false } as unknown as KafkaConfig;
  return createKafka(config, 'contract', createLogger('test', 'silent'));
}

/** Opens what kafkajs opens for a consumer, and returns its connection to the one broker. */
async function connect(kafka: Kafka, opened: AsyncDisposableStack): Promise<BrokerConnection> {
  const name = Object.getOwnPropertySymbols(kafka).find((symbol) => String(symbol).includes('createCluster'));
  const create = (kafka as unknown as Record<symbol, (options: object) => Cluster>)[name as symbol];
  if (!create) throw new Error('kafkajs creates its clusters in another way');
  const cluster = create({ metadataMaxAge: 300_000, allowAutoTopicCreation: false });
  await cluster.connect();
  opened.defer(() => cluster.disconnect());
  await cluster.refreshMetadata();
  return await cluster.findControllerBroker();
}
