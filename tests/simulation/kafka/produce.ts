import type { SimulatedProcess } from '../world/simulated-process.ts';
import type { LogRecord, NewRecord, PartitionLog } from './partition-log.ts';
import { ERROR_CODES, type Node, type SimulatedKafka } from './simulated-kafka.ts';

/** What a record takes in its batch besides its value, in bytes: lengths, offset, time, and the headers of rows. */
const RECORD_OVERHEAD_BYTES = 60;
const BATCH_OVERHEAD_BYTES = 61;

/** How often a broker looks whether replicas have followed, in milliseconds. */
const REPLICAS_MS = 20;

export interface ProduceRequest {
  /** How long the broker waits for replicas, in milliseconds. */
  readonly timeout: number;
  readonly topicData: readonly {
    readonly topic: string;
    readonly partitions: readonly { readonly partition: number; readonly messages: readonly NewMessage[] }[];
  }[];
}

interface NewMessage {
  readonly headers?: NewRecord['headers'];
  readonly value: Buffer | string;
}

export interface ProducedPartition {
  readonly partition: number;
  readonly errorCode: number;
  readonly baseOffset: string;
  readonly logAppendTime: string;
  readonly logStartOffset: string;
}

/** Who has sent a request, and when. */
export interface Sent {
  readonly by: SimulatedProcess | undefined;
  /** In milliseconds of virtual time. */
  readonly atMs: number;
}

/** What happens when producers send records. */
export interface ProducerEvents {
  /** A broker has taken a record batch. */
  appended(log: PartitionLog, records: readonly LogRecord[], sent: Sent): void;
  /** A broker has not taken a record batch, or not acknowledged it. */
  refused(log: PartitionLog, node: Node, errorCode: number, sent: Sent): void;
  /** A producer has got the acknowledgement of the record batch that begins at an offset. */
  acknowledged(log: PartitionLog, offset: number): void;
}

/**
 * A broker takes the record batches of a request, one for each partition, and responds when all in-sync replicas have
 * them (`acks=all`). Each batch is taken or refused on its own. One that was not acknowledged in time stays in its log.
 */
export async function produce(kafka: SimulatedKafka, node: Node, { timeout, topicData }: ProduceRequest, sent: Sent) {
  const topics = topicData.map(async ({ topic, partitions }) => ({
    topicName: topic,
    partitions: await Promise.all(
      partitions.map(async ({ partition, messages }): Promise<ProducedPartition> => {
        const log = kafka.log(topic, partition);
        const baseOffset = log?.high ?? -1;
        const errorCode = log
          ? await append(kafka, node, log, messages, timeout, sent)
          : ERROR_CODES.UNKNOWN_TOPIC_OR_PARTITION;
        if (log && errorCode !== 0) kafka.producers.refused(log, node, errorCode, sent);
        return {
          ...{ partition, errorCode, baseOffset: String(errorCode === 0 ? baseOffset : -1) },
          logAppendTime: String(errorCode === 0 && log?.isStampedByBroker ? kafka.time.dateMs : -1),
          logStartOffset: String(log?.low ?? -1),
        };
      }),
    ),
  }));
  return { throttleTime: 0, topics: await Promise.all(topics) };
}

/** Returns the error code. */
async function append(
  kafka: SimulatedKafka,
  node: Node,
  log: PartitionLog,
  messages: readonly NewMessage[],
  timeoutMs: number,
  sent: Sent,
): Promise<number> {
  const errorCode = kafka.errorOf(node, log);
  if (errorCode !== 0) return errorCode;
  const bytes = messages.reduce((sum, { value }) => sum + value.length + RECORD_OVERHEAD_BYTES, BATCH_OVERHEAD_BYTES);
  if (bytes > log.batchBytesMax) return ERROR_CODES.MESSAGE_TOO_LARGE;
  if (log.replicas === 'too few' && kafka.random.isTrue(0.5)) return ERROR_CODES.NOT_ENOUGH_REPLICAS;
  const records = messages.map(({ headers = {}, value }) => kafka.append(log, { headers, value: Buffer.from(value) }));
  kafka.producers.appended(log, records, sent);
  if (log.replicas === 'too few') return ERROR_CODES.NOT_ENOUGH_REPLICAS_AFTER_APPEND;
  const until = kafka.time.nowMs + timeoutMs;
  while (log.replicas !== 'in sync') {
    if (kafka.time.nowMs >= until) return ERROR_CODES.REQUEST_TIMED_OUT;
    await kafka.time.wait(REPLICAS_MS);
    if (log.leader !== node.nodeId) return ERROR_CODES.NOT_LEADER_FOR_PARTITION;
  }
  return 0;
}

/** How long a new partition has no leader, in milliseconds. */
const ELECTION_MS_MAX = 300;

export interface NewTopic {
  readonly topic: string;
  readonly numPartitions?: number;
  readonly configEntries?: readonly { readonly name: string; readonly value: string }[];
}

/** Returns the error code of each topic. Only the controller creates any. */
export function createTopics(kafka: SimulatedKafka, node: Node, topics: readonly NewTopic[]) {
  return topics.map(({ topic, numPartitions = 1, configEntries = [] }) => {
    if (node.nodeId !== kafka.someNodeId) return { topic, errorCode: ERROR_CODES.NOT_CONTROLLER };
    if (kafka.log(topic, 0)) return { topic, errorCode: ERROR_CODES.TOPIC_ALREADY_EXISTS };
    for (let partition = 0; partition < numPartitions; partition += 1) {
      const log = kafka.addLog(topic, partition, -1);
      log.isStampedByBroker = configEntries.some(({ value }) => value === 'LogAppendTime');
      kafka.time.after(kafka.random.between(0, ELECTION_MS_MAX), () => {
        if (log.leader < 0) log.elect(kafka.someNodeId);
      });
    }
    return { topic, errorCode: 0 };
  });
}
