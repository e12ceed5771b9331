import type { QueuedRows } from './partition-queue.ts';
import type { TopicPartition } from './topic-partition.ts';

/** What one send holds for one partition. */
export interface Bundle {
  readonly target: TopicPartition;
  readonly items: readonly QueuedRows[];
}

/** Why a bundle was not acknowledged. */
export interface SendFailure {
  readonly bundle: Bundle;
  /** Kafka's name of the error, such as `NOT_ENOUGH_REPLICAS`; `undefined` when no response came. */
  readonly type: string | undefined;
  readonly reason: string;
}
