import { nameOf } from '@sluice/storage/protocol/position';
import type { Network } from '../world/network.ts';
import type { Random } from '../world/random.ts';
import type { VirtualTime } from '../world/virtual-time.ts';
import { ConsumerGroup } from './consumer-group.ts';
import { type LogRecord, type NewRecord, PartitionLog } from './partition-log.ts';
import type { ProducerEvents } from './produce.ts';

/** Kafka's error codes that the simulated cluster answers with. */
export const ERROR_CODES = {
  OFFSET_OUT_OF_RANGE: 1,
  UNKNOWN_TOPIC_OR_PARTITION: 3,
  LEADER_NOT_AVAILABLE: 5,
  NOT_LEADER_FOR_PARTITION: 6,
  REQUEST_TIMED_OUT: 7,
  MESSAGE_TOO_LARGE: 10,
  GROUP_COORDINATOR_NOT_AVAILABLE: 15,
  NOT_COORDINATOR_FOR_GROUP: 16,
  NOT_ENOUGH_REPLICAS: 19,
  NOT_ENOUGH_REPLICAS_AFTER_APPEND: 20,
  ILLEGAL_GENERATION: 22,
  UNKNOWN_MEMBER_ID: 25,
  REBALANCE_IN_PROGRESS: 27,
  TOPIC_ALREADY_EXISTS: 36,
  NOT_CONTROLLER: 41,
  KAFKA_STORAGE_ERROR: 56,
} as const;

/** Kafka's error of a whole response. */
export class KafkaError extends Error {
  override readonly name = 'KafkaError';
  readonly type: keyof typeof ERROR_CODES;

  constructor(type: KafkaError['type']) {
    super(type);
    this.type = type;
  }
}

/** A broker. It is a server of the network by the name `kafka N`. */
export interface Node {
  readonly nodeId: number;
  readonly host: string;
  readonly port: number;
  isUp: boolean;
  /** Grows with each start: connections to an earlier one are broken. */
  starts: number;
}

export interface FetchRequest {
  readonly maxWaitTime: number;
  readonly maxBytes: number;
  readonly topics: readonly {
    readonly topic: string;
    readonly partitions: readonly {
      readonly partition: number;
      readonly fetchOffset: string;
      readonly maxBytes: number;
    }[];
  }[];
}

export interface CommitRequest {
  readonly groupId: string;
  readonly memberId: string;
  readonly groupGenerationId: number;
  readonly topics: readonly {
    readonly topic: string;
    readonly partitions: readonly { readonly partition: number; readonly offset: string; readonly metadata?: string }[];
  }[];
}

export interface CommittedRequest {
  readonly groupId: string;
  readonly topics: readonly {
    readonly topic: string;
    readonly partitions: readonly { readonly partition: number }[];
  }[];
}

interface FetchedPartition {
  readonly partition: number;
  readonly errorCode: number;
  readonly highWatermark: string;
  readonly lastStableOffset: string;
  readonly abortedTransactions: readonly never[];
  readonly messages: readonly LogRecord[];
}

export interface SimulatedKafkaOptions {
  readonly time: VirtualTime;
  readonly network: Network;
  readonly random: Random;
  readonly nodes: number;
  /** The numbers of partitions, by topic. */
  readonly topics: Readonly<Record<string, number>>;
  /** Called with each offset that is committed. */
  readonly onCommit?: (commit: Commit) => void;
}

/** A member of a group commits an offset. */
export interface Commit {
  readonly groupId: string;
  readonly log: PartitionLog;
  readonly offset: number;
  /** The member's, as kafkajs encodes it. */
  readonly assignment: Buffer | undefined;
}

/** A Kafka cluster: brokers, logs, and the coordinator of the consumer groups. */
export class SimulatedKafka {
  readonly #options: SimulatedKafkaOptions;
  readonly nodes: readonly Node[];
  readonly logs: PartitionLog[];
  readonly #groups = new Map<string, ConsumerGroup>();
  /** Which node coordinates the groups; -1 while none does. */
  coordinator = 1;
  /** Learns what happens when producers send records. */
  producers: ProducerEvents = { appended() {}, refused() {}, acknowledged() {} };
  /** Partitions that a broker cannot read, by name. */
  readonly unreadable = new Set<string>();
  #appended = Promise.withResolvers<void>();

  constructor(options: SimulatedKafkaOptions) {
    this.#options = options;
    const { nodes, topics } = options;
    this.nodes = Array.from({ length: nodes }, (_, index) => {
      return { nodeId: index + 1, host: `kafka-${index + 1}`, port: 9092, isUp: true, starts: 1 };
    });
    this.logs = Object.entries(topics).flatMap(([topic, count]) =>
      Array.from({ length: count }, (_, partition) => new PartitionLog(topic, partition, (partition % nodes) + 1)),
    );
  }

  get network(): Network {
    return this.#options.network;
  }

  get time(): VirtualTime {
    return this.#options.time;
  }

  get random(): Random {
    return this.#options.random;
  }

  nodeAt(host: string): Node {
    const node = this.nodes.find((other) => other.host === host);
    if (!node) throw new Error(`there is no node ${host}`);
    return node;
  }

  log(topic: string, partition: number): PartitionLog | undefined {
    return this.logs.find((log) => log.topic === topic && log.partition === partition);
  }

  /** Returns the number of a broker that runs; -1 when none does. */
  get someNodeId(): number {
    return this.nodes.find(({ isUp }) => isUp)?.nodeId ?? -1;
  }

  /** A group begins with the first request that names it. */
  group(groupId: string): ConsumerGroup {
    const known = this.#groups.get(groupId);
    if (known) return known;
    const group = new ConsumerGroup(this.time);
    this.#groups.set(groupId, group);
    return group;
  }

  addLog(topic: string, partition: number, leader: number): PartitionLog {
    const log = new PartitionLog(topic, partition, leader);
    this.logs.push(log);
    return log;
  }

  append(log: PartitionLog, record: NewRecord): LogRecord {
    const appended = log.append(record, this.#options.time.dateMs);
    this.#appended.resolve();
    this.#appended = Promise.withResolvers();
    return appended;
  }

  /** A broker stops. Others lead its partitions and coordinate its groups, if there are any. */
  stop(node: Node): void {
    node.isUp = false;
    this.network.breakServer(serverOf(node));
    const others = this.nodes.filter(({ isUp }) => isUp);
    const next = () => (others.length === 0 ? -1 : this.#options.random.pick(others).nodeId);
    for (const log of this.logs) if (log.leader === node.nodeId) log.elect(next());
    if (this.coordinator === node.nodeId) this.coordinator = next();
  }

  start(node: Node): void {
    node.isUp = true;
    node.starts += 1;
    for (const log of this.logs) if (log.leader < 0) log.elect(node.nodeId);
    if (this.coordinator < 0) this.coordinator = node.nodeId;
  }

  metadata(topics: readonly string[]) {
    const found = topics.map((topic) => ({ topic, logs: this.logs.filter((log) => log.topic === topic) }));
    return {
      throttleTime: 0,
      brokers: this.nodes
        .filter(({ isUp }) => isUp)
        .map(({ nodeId, host, port }) => ({ nodeId, host, port, rack: null })),
      clusterId: 'simulated',
      controllerId: this.someNodeId,
      topicMetadata: found.map(({ topic, logs }) => ({
        topicErrorCode: logs.length === 0 ? ERROR_CODES.UNKNOWN_TOPIC_OR_PARTITION : 0,
        topic,
        isInternal: false,
        partitionMetadata: logs.map(({ partition, leader }) => ({
          partitionErrorCode: leader < 0 ? ERROR_CODES.LEADER_NOT_AVAILABLE : 0,
          partitionId: partition,
          leader,
          replicas: this.nodes.map(({ nodeId }) => nodeId),
          isr: this.nodes.filter(({ isUp }) => isUp).map(({ nodeId }) => nodeId),
        })),
      })),
    };
  }

  /** Waits for records if there are none, as brokers do. */
  async fetch(node: Node, request: FetchRequest) {
    const { time } = this.#options;
    const until = time.nowMs + request.maxWaitTime;
    for (;;) {
      const responses = this.#read(node, request);
      const isEmpty = responses.every(({ partitions }) =>
        partitions.every(({ errorCode, messages }) => errorCode === 0 && messages.length === 0),
      );
      if (!isEmpty || time.nowMs >= until || !node.isUp) return { throttleTime: 0, responses };
      await Promise.race([this.#appended.promise, time.wait(until - time.nowMs)]);
    }
  }

  #read(node: Node, { topics }: FetchRequest) {
    return topics.map(({ topic, partitions }) => ({
      topicName: topic,
      partitions: partitions.map(({ partition, fetchOffset, maxBytes }): FetchedPartition => {
        const log = this.log(topic, partition);
        const offset = Number(fetchOffset);
        const errorCode = this.errorOf(node, log, offset);
        const high = String(log?.high ?? -1);
        const messages = log && errorCode === 0 ? limited(log.from(offset), maxBytes) : [];
        return { partition, errorCode, highWatermark: high, lastStableOffset: high, abortedTransactions: [], messages };
      }),
    }));
  }

  /** Returns why a node cannot read or write at an offset of a log; 0 when it can. */
  errorOf(node: Node, log: PartitionLog | undefined, offset = log?.low ?? 0): number {
    if (!log) return ERROR_CODES.UNKNOWN_TOPIC_OR_PARTITION;
    if (log.leader !== node.nodeId) return ERROR_CODES.NOT_LEADER_FOR_PARTITION;
    if (this.unreadable.has(nameOf(log))) return ERROR_CODES.KAFKA_STORAGE_ERROR;
    return offset < log.low || offset > log.high ? ERROR_CODES.OFFSET_OUT_OF_RANGE : 0;
  }

  listOffsets(
    node: Node,
    topics: readonly {
      readonly topic: string;
      readonly partitions: readonly { readonly partition: number; readonly timestamp: number }[];
    }[],
  ) {
    return {
      responses: topics.map(({ topic, partitions }) => ({
        topic,
        partitions: partitions.map(({ partition, timestamp }) => {
          const log = this.log(topic, partition);
          const errorCode = this.errorOf(node, log);
          const isEarliest = String(timestamp) === '-2';
          return { partition, errorCode, timestamp: '-1', offset: String((isEarliest ? log?.low : log?.high) ?? -1) };
        }),
      })),
    };
  }

  /** @throws {KafkaError} when a node does not coordinate the groups */
  requireCoordinator(node: Node): void {
    if (this.coordinator !== node.nodeId) throw new KafkaError('NOT_COORDINATOR_FOR_GROUP');
  }

  /** @throws {GroupError} */
  commit({ groupId, memberId, groupGenerationId, topics }: CommitRequest): void {
    const all = topics.flatMap(({ topic, partitions }) =>
      partitions.map(({ partition, offset, metadata = '' }) => {
        return { topic, partition, name: nameOf({ topic, partition }), offset: Number(offset), metadata };
      }),
    );
    const group = this.group(groupId);
    group.commit(memberId, groupGenerationId, all);
    const assignment = group.assignmentOf(memberId);
    for (const { topic, partition, offset } of all) {
      const log = this.log(topic, partition);
      if (log) this.#options.onCommit?.({ groupId, log, offset, assignment });
    }
  }

  committed({ groupId, topics }: CommittedRequest) {
    const { offsets, metadata } = this.group(groupId);
    return {
      responses: topics.map(({ topic, partitions }) => ({
        topic,
        partitions: partitions.map(({ partition }) => {
          const name = nameOf({ topic, partition });
          const offset = String(offsets.get(name) ?? -1);
          return { partition, offset, metadata: metadata.get(name) ?? '', errorCode: 0 };
        }),
      })),
    };
  }
}

export function serverOf({ nodeId }: Node): string {
  return `kafka ${nodeId}`;
}

/** Returns the first records that fit, at least one. */
function limited(records: readonly LogRecord[], bytesMax: number): readonly LogRecord[] {
  let bytes = 0;
  const count = records.findIndex(({ value }, index) => {
    bytes += value.length;
    return index > 0 && bytes > bytesMax;
  });
  return count < 0 ? records : records.slice(0, count);
}
