import { setImmediate as nextTurnOfEventLoop } from 'node:timers/promises';
import type { EachBatchPayload, OffsetsByTopicPartition } from 'kafkajs';

type Batch = EachBatchPayload['batch'];
type Send = (offsets: OffsetsByTopicPartition) => Promise<void>;

/**
 * Commits the offsets of one assignment. Batches of many partitions are stored together, and what is to be committed in
 * the same turn of the event loop goes to Kafka in one request.
 */
export class OffsetCommits {
  readonly #signal: AbortSignal;
  #offsets: { readonly topic: string; readonly partition: number; readonly offset: string }[] = [];
  #sending: Promise<void> | undefined;

  /** @param signal aborts when the assignment is over */
  constructor(signal: AbortSignal) {
    this.#signal = signal;
  }

  /**
   * Commits the offset after a batch, unless the assignment is over: kafkajs would commit in the name of its newest one.
   *
   * @throws kafkajs's errors
   */
  commit(batch: Batch, send: Send): Promise<void> {
    const { topic, partition } = batch;
    this.#offsets.push({ topic, partition, offset: String(BigInt(batch.lastOffset()) + 1n) });
    this.#sending ??= this.#sendAll(send);
    return this.#sending;
  }

  async #sendAll(send: Send): Promise<void> {
    await nextTurnOfEventLoop();
    const byTopic = Map.groupBy(this.#offsets, ({ topic }) => topic);
    this.#offsets = [];
    this.#sending = undefined;
    if (this.#signal.aborted) return;
    await send({ topics: [...byTopic].map(([topic, partitions]) => ({ topic, partitions })) });
  }
}
