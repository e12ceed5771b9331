import type { KafkaConfig } from '@sluice/shared/config';
import { topicNames } from '@sluice/shared/kafka/topics';
import type { RowTopic } from '@sluice/submissions/rows/row-gatherer';
import { createPartitionQueue, type PartitionQueue } from './partition-queue.ts';

/** A partition that rows are sent to, with the rows that wait for it. */
export class TopicPartition {
  /** The topic's name in Kafka. */
  readonly topic: string;
  readonly partition: number;
  readonly queue: PartitionQueue = createPartitionQueue();
  /** The broker that leads it; -1 while it has no leader. */
  leader = -1;
  /** A send to it is under way. There is never more than one, so that acknowledged offsets grow. */
  isSending = false;
  #acknowledgedOffset = -1n;

  constructor(topic: string, partition: number) {
    this.topic = topic;
    this.partition = partition;
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
  const create = (topic: string) =>
    Array.from({ length: config.KAFKA_PARTITIONS }, (_, partition) => new TopicPartition(topic, partition));
  return { events: create(events), entities: create(entities) };
}
