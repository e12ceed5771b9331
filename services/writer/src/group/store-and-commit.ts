import { setImmediate as nextTurnOfEventLoop } from 'node:timers/promises';
import type { Assignment } from '@sluice/storage/protocol/assignment';
import type { EachBatchPayload, OffsetsByTopicPartition, TopicPartitionOffsetAndMetadata } from 'kafkajs';

export interface StoreAndCommitOptions {
  readonly payload: EachBatchPayload;
  readonly assignment: Assignment;
  /** Commits in the name of the assignment. */
  readonly commits: OffsetCommits;
  /** Resolves with whether the batch is stored, once none of its statements is running any more. */
  readonly store: () => Promise<boolean>;
  readonly heartbeatMs: number;
  /** Called when a heartbeat shows that the group has removed this member. */
  readonly onExpelled: () => void;
}

/**
 * Stores a fetched batch, then commits it:
 *
 * 1. Store. The batch goes to ClickHouse, while heartbeats keep this member in the group.
 * 2. Commit. Kafka gets the offset after the batch, unless the assignment is over.
 *
 * A crash between the two has the batch read and stored again, and each row is stored once.
 *
 * @throws what `store` throws, and kafkajs's errors
 */
export async function storeAndCommit(options: StoreAndCommitOptions): Promise<void> {
  const { payload, assignment, commits, store, heartbeatMs, onExpelled } = options;
  const { batch, heartbeat, resolveOffset, commitOffsetsIfNecessary } = payload;
  const storing = store();
  try {
    await withHeartbeats(storing, heartbeat, heartbeatMs);
  } catch (error) {
    if (leadsToRejoin(error)) onExpelled();
    // The next owner must not begin while the rows are still being stored here.
    await storing.catch(() => undefined);
    throw error;
  }
  const isStored = await storing;
  if (!isStored || assignment.signal.aborted) return;
  resolveOffset(batch.lastOffset());
  // The one place where offsets of stored batches are committed: GroupConsumer turns kafkajs's own commits off.
  await commits.commit(batch, commitOffsetsIfNecessary);
}

/** Kafka's errors after which kafkajs joins the group again: the assignment is over. */
const REJOIN_ERRORS = new Set<unknown>(['REBALANCE_IN_PROGRESS', 'ILLEGAL_GENERATION', 'UNKNOWN_MEMBER_ID']);

/** Returns whether kafkajs joins the group again after this error. */
function leadsToRejoin(error: unknown): boolean {
  return error instanceof Error && 'type' in error && REJOIN_ERRORS.has(error.type);
}

/**
 * Waits for `work`, and sends a heartbeat to the group every `everyMs`. kafkajs itself sends heartbeats only between two
 * batches, so the group would take a writer that stores a large batch for dead.
 *
 * @throws what `work` throws, and kafkajs's errors when the group rejects the heartbeat; `work` may still be running then
 */
async function withHeartbeats(work: Promise<unknown>, heartbeat: () => Promise<void>, everyMs: number): Promise<void> {
  const { promise: rejected, reject } = Promise.withResolvers<never>();
  const timer = setInterval(() => heartbeat().catch(reject), everyMs);
  await Promise.race([work, rejected]).finally(() => clearInterval(timer));
}

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
