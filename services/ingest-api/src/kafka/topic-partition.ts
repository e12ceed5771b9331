import type { KafkaConfig } from '@sluice/shared/config';
import { topicNames } from '@sluice/shared/kafka/topics';
import type { RowTopic } from '@sluice/submissions/rows/partition-rows';
import { PartitionQueue } from './partition-queue.ts';

/**
 * The most that is packed into one record batch at first, in bytes. A broker takes batches of 1,048,588 bytes by default
 * (`max.message.bytes`). The rest is for the batch's own header, and for rows of 256 KiB that begin another message.
 */
const BATCH_BYTES_MAX = 900 * 1_024;

/** How large a record batch of one topic may be, as far as is known. */
export interface BatchLimit {
  bytesMax: number;
}

/** A partition that rows are sent to, with the rows that wait for it. */
export class TopicPartition {
  /** The topic's name in Kafka. */
  readonly topic: string;
  readonly partition: number;
  readonly queue = new PartitionQueue();
  /** All partitions of the topic share it. */
  readonly limit: BatchLimit;
  /** The broker that leads it; -1 while it has no leader. */
  leader = -1;
  /** A send to it is under way. There is never more than one, so that acknowledged offsets grow. */
  isSending = false;
  /** The last send to it failed. Until one succeeds, healthy partitions do not travel with it. */
  isFailing = false;
  #acknowledgedOffset = -1n;

  constructor(topic: string, partition: number, limit: BatchLimit) {
    this.topic = topic;
    this.partition = partition;
    this.limit = limit;
  }

  /** Whether rows wait that could be sent now. */
  get isWaiting(): boolean {
    return !this.queue.isEmpty && !this.isSending;
  }

  /**
   * Records the offset of a record batch that Kafka has acknowledged. Offsets only grow, unless the end of the log was
   * cut off.
   *
   * @returns how many messages were acknowledged before and are gone
   */
  acknowledge(offset: bigint): number {
    const lost = offset <= this.#acknowledgedOffset ? Number(this.#acknowledgedOffset - offset + 1n) : 0;
    this.#acknowledgedOffset = offset;
    return lost;
  }
}

/** The partitions of both topics of rows, in the order of their numbers. */
export type TopicPartitions = Readonly<Record<RowTopic, readonly TopicPartition[]>>;

export function createTopicPartitions(config: KafkaConfig): TopicPartitions {
  const { events, entities } = topicNames(config);
  const create = (topic: string) => {
    const limit = { bytesMax: BATCH_BYTES_MAX };
    return Array.from(
      { length: config.KAFKA_PARTITIONS },
      (_, partition) => new TopicPartition(topic, partition, limit),
    );
  };
  return { events: create(events), entities: create(entities) };
}
