import type { Batch, ConsumerGroupJoinEvent } from 'kafkajs';
import type { Epoch } from './epoch.ts';
import { Superseded } from './ownership.ts';
import { leaderEpochOf, nameOf, type Place, placeAfter } from './place.ts';

/** What a fetched batch is, seen from the assignment. */
export type Delivery =
  /** It was fetched in another generation, or of a partition that is not open here: it must not be stored. */
  | { readonly kind: 'late' }
  /** It was fetched from another offset than the next one. */
  | { readonly kind: 'elsewhere'; readonly place: Place }
  /** Messages before it are missing from the log. */
  | { readonly kind: 'gap'; readonly place: Place; readonly first: bigint }
  /** What comes next, written by a later leader than what was stored last: the log may have been cut off in between. */
  | { readonly kind: 'new leader'; readonly place: Place }
  | { readonly kind: 'next' };

/** What the group gave to this writer in one generation. A partition is stored only while it is open. */
export interface Assignment {
  readonly generation: number;
  readonly memberId: string;
  readonly partitions: Readonly<Record<string, readonly number[]>>;
  /** Aborted, with a {@link Superseded}, when the assignment is over. */
  readonly signal: AbortSignal;
  /** Set once this writer is recorded as an owner. */
  epoch: Epoch | undefined;
  end(reason: string): void;
  /** A partition may be stored from this place on. */
  open(topic: string, partition: number, place: Place): void;
  close(topic: string, partition: number): void;
  isOpen(topic: string, partition: number): boolean;
  judge(batch: Batch): Delivery;
  /** The batch is on its way into ClickHouse: the next one begins behind it. */
  advance(batch: Batch): void;
  /** The batch is to be fetched again. */
  goBack(batch: Batch): void;
}

export function createAssignment(joined: ConsumerGroupJoinEvent['payload']): Assignment {
  const ending = new AbortController();
  const places = new Map<string, Place>();
  /** Where the batch that is on its way begins. */
  const placesBefore = new Map<string, Place>();
  const generation = joined.generationId;

  return {
    generation,
    memberId: joined.memberId,
    partitions: joined.memberAssignment,
    signal: ending.signal,
    epoch: undefined,
    end(reason) {
      ending.abort(new Superseded(reason));
    },
    open(topic, partition, place) {
      places.set(nameOf({ topic, partition }), place);
    },
    close(topic, partition) {
      places.delete(nameOf({ topic, partition }));
    },
    isOpen: (topic, partition) => places.has(nameOf({ topic, partition })),
    judge(batch) {
      const place = places.get(nameOf(batch));
      const [first] = batch.messages;
      if (batch.generationId !== generation || !place || !first) return { kind: 'late' };
      if (BigInt(batch.fetchedOffset) !== place.nextOffset) return { kind: 'elsewhere', place };
      if (BigInt(first.offset) !== place.nextOffset) return { kind: 'gap', place, first: BigInt(first.offset) };
      if (place.last && leaderEpochOf(first) > place.last.leaderEpoch) return { kind: 'new leader', place };
      return { kind: 'next' };
    },
    advance(batch) {
      const last = batch.messages.at(-1);
      const place = places.get(nameOf(batch));
      if (!last || !place) return;
      placesBefore.set(nameOf(batch), place);
      places.set(nameOf(batch), placeAfter(last));
    },
    goBack(batch) {
      const place = placesBefore.get(nameOf(batch));
      if (place && String(place.nextOffset) === batch.messages[0]?.offset) places.set(nameOf(batch), place);
    },
  };
}
