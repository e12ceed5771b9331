import type { Batch, ConsumerGroupJoinEvent, TopicPartitionOffsetAndMetadata } from 'kafkajs';
import { Fenced, type OwnEpoch } from './epoch.ts';
import { leaderEpochOf, nameOf, type Position, positionAfter, type TopicPartition } from './position.ts';

/** How a fetched batch fits the assignment. */
export type Delivery =
  /** The batch is the next one of its partition. */
  | { readonly kind: 'next' }
  /** Its partition is not open: it must not be stored. */
  | { readonly kind: 'late' }
  /** It was fetched from another offset than the next one. */
  | { readonly kind: 'elsewhere'; readonly position: Position }
  /** The log has no messages from the next offset up to `first`. */
  | { readonly kind: 'gap'; readonly position: Position; readonly first: bigint }
  /** The batch is the next one, but a later leader has written it: the log may have been cut off before. */
  | { readonly kind: 'new leader'; readonly position: Position };

/**
 * The partitions that the group gave to this writer in one generation. It ends with the next rebalance: then its signal
 * is aborted, and everything that works for it stops.
 *
 * A partition is stored only while it is open. An open partition has a position: where its next batch must begin.
 */
export class Assignment {
  readonly generation: number;
  readonly memberId: string;
  /** The member that leads the generation. */
  readonly leaderId: string;
  readonly partitions: Readonly<Record<string, readonly number[]>>;
  /** Undefined until this writer is recorded as an owner. */
  epoch: OwnEpoch | undefined;
  readonly #ending = new AbortController();
  /** The positions of the open partitions, by name. */
  readonly #positions = new Map<string, Position>();
  /** Where the batches begin that are being stored. */
  readonly #previousPositions = new Map<string, Position>();
  /** What was committed last of the open partitions, by name. */
  readonly #committed = new Map<string, TopicPartitionOffsetAndMetadata>();

  constructor({ generationId, memberId, leaderId, memberAssignment }: ConsumerGroupJoinEvent['payload']) {
    this.generation = generationId;
    this.memberId = memberId;
    this.leaderId = leaderId;
    this.partitions = memberAssignment;
  }

  /** Aborted when the assignment is over, with {@link Fenced} as the reason. */
  get signal(): AbortSignal {
    return this.#ending.signal;
  }

  end(reason: string): void {
    this.#ending.abort(new Fenced(reason));
  }

  /** Lets a partition be stored, from this position on. */
  open(partition: TopicPartition, position: Position): void {
    this.#positions.set(nameOf(partition), position);
  }

  close(partition: TopicPartition): void {
    this.#positions.delete(nameOf(partition));
    this.#committed.delete(nameOf(partition));
  }

  isOpen(partition: TopicPartition): boolean {
    return this.#positions.has(nameOf(partition));
  }

  /** The offsets that were committed last of the open partitions. */
  get committed(): readonly TopicPartitionOffsetAndMetadata[] {
    return [...this.#committed.values()];
  }

  addCommitted(offsets: readonly TopicPartitionOffsetAndMetadata[]): void {
    for (const offset of offsets) this.#committed.set(nameOf(offset), offset);
  }

  /** Returns how a fetched batch fits: only `next` may be stored as it is. */
  classify(batch: Batch): Delivery {
    const position = this.#positions.get(nameOf(batch));
    const [first] = batch.messages;
    if (!position || !first) return { kind: 'late' };
    if (BigInt(batch.fetchedOffset) !== position.nextOffset) return { kind: 'elsewhere', position };
    if (BigInt(first.offset) !== position.nextOffset) return { kind: 'gap', position, first: BigInt(first.offset) };
    if (position.last && leaderEpochOf(first) > position.last.leaderEpoch) return { kind: 'new leader', position };
    return { kind: 'next' };
  }

  /** Moves the position behind a batch that is being stored. */
  advance(batch: Batch): void {
    const last = batch.messages.at(-1);
    const position = this.#positions.get(nameOf(batch));
    if (!last || !position) return;
    this.#previousPositions.set(nameOf(batch), position);
    this.#positions.set(nameOf(batch), positionAfter(last));
  }

  /** Moves the position back to the beginning of a batch that is going to be fetched again. */
  goBack(batch: Batch): void {
    const position = this.#previousPositions.get(nameOf(batch));
    if (position && String(position.nextOffset) === batch.messages[0]?.offset) {
      this.#positions.set(nameOf(batch), position);
    }
  }
}
