import type { EachBatchPayload } from 'kafkajs';
import type { Assignment } from '../protocol/assignment.ts';
import { leadsToRejoin, withHeartbeats } from './heartbeats.ts';
import type { OffsetCommits } from './offset-commits.ts';

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
