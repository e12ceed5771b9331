import { setImmediate as nextTurnOfEventLoop } from 'node:timers/promises';
import type { EachBatchPayload, OffsetsByTopicPartition, TopicPartitionOffsetAndMetadata } from 'kafkajs';
import type { Assignment } from '../protocol/assignment.ts';

type Batch = EachBatchPayload['batch'];
type Send = (offsets: OffsetsByTopicPartition) => Promise<void>;

/**
 * Commits the offsets of one assignment. Batches of many partitions are stored together, and what is to be committed in
 * the same turn of the event loop goes to Kafka in one request.
 */
export class OffsetCommits {
  readonly #assignment: Assignment;
  readonly #metadata: () => string;
  #offsets: TopicPartitionOffsetAndMetadata[] = [];
  #sending: Promise<void> | undefined;

  /** @param metadata returns that of each offset */
  constructor(assignment: Assignment, metadata: () => string) {
    this.#assignment = assignment;
    this.#metadata = metadata;
  }

  /**
   * Commits the offset after a batch, unless the assignment is over: kafkajs would commit in the name of its newest one.
   *
   * @throws kafkajs's errors
   */
  commit(batch: Batch, send: Send): Promise<void> {
    const { topic, partition } = batch;
    const offset = String(BigInt(batch.lastOffset()) + 1n);
    this.#offsets.push({ topic, partition, offset, metadata: this.#metadata() });
    this.#sending ??= this.#sendAll(send);
    return this.#sending;
  }

  async #sendAll(send: Send): Promise<void> {
    await nextTurnOfEventLoop();
    const offsets = this.#offsets;
    this.#offsets = [];
    this.#sending = undefined;
    if (this.#assignment.signal.aborted) return;
    const byTopic = Map.groupBy(offsets, ({ topic }) => topic);
    await send({ topics: [...byTopic].map(([topic, partitions]) => ({ topic, partitions })) });
    this.#assignment.addCommitted(offsets);
  }
}
