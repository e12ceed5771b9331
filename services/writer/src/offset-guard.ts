import type { Admin, PartitionOffset, SeekEntry } from 'kafkajs';

/** Rows that were acknowledged are no longer in Kafka, or never were in this topic: a person has to look. */
export class OffsetGap extends Error {
  override readonly name = 'OffsetGap';
}

/** The offsets that a partition's log holds: from `low`, up to but not including `high`. */
export interface LogBounds {
  readonly low: bigint;
  readonly high: bigint;
}

/**
 * The offset to go on from: what the group has committed, or the oldest there is when it has committed nothing.
 *
 * @param committed -1 when nothing was
 * @throws {OffsetGap} when the log does not hold it
 */
export function resumeOffset(name: string, committed: bigint, { low, high }: LogBounds): bigint {
  if (committed < 0n) return low;
  const log = `the log of ${name} holds the offsets from ${low} to ${high}`;
  if (committed < low) {
    throw new OffsetGap(
      `${low - committed} messages are gone before they were stored: ${log}, and ${committed} is next`,
    );
  }
  if (committed > high) throw new OffsetGap(`the log was cut off: ${log}, and ${committed} is next`);
  return committed;
}

export interface OffsetGuard {
  /**
   * Looks at the partitions that were assigned.
   *
   * @param isCurrent whether they still are; answers that come too late count for nothing
   * @throws {OffsetGap}
   * @throws kafkajs's errors; then it can be called again
   */
  begin(admin: Admin, assignment: Readonly<Record<string, readonly number[]>>, isCurrent: () => boolean): Promise<void>;
  /** Takes note of the offsets of a batch. @throws {OffsetGap} when some before it were left out */
  follow(topic: string, partition: number, first: string, last: string): void;
}

/**
 * Sees to it that no offset is left out. kafkajs would reset an offset that Kafka no longer has, and is patched not to; here
 * the same is noticed with the figures. The topics are neither compacted nor transactional, so offsets have no gaps.
 */
export function createOffsetGuard(groupId: string): OffsetGuard {
  let next = new Map<string, bigint>();

  return {
    async begin(admin, assignment, isCurrent) {
      const found = new Map<string, bigint>();
      const topics = Object.keys(assignment);
      const committed = await admin.fetchOffsets({ groupId, topics });
      for (const topic of topics) {
        const bounds = await admin.fetchTopicOffsets(topic);
        const ofGroup: readonly PartitionOffset[] = committed.find((group) => group.topic === topic)?.partitions ?? [];
        for (const partition of assignment[topic] ?? []) {
          const name = `${topic}/${partition}`;
          found.set(name, resumeOffset(name, offsetOf(ofGroup, partition), boundsOf(bounds, partition)));
        }
      }
      if (isCurrent()) next = found;
    },
    follow(topic, partition, first, last) {
      const name = `${topic}/${partition}`;
      const expected = next.get(name);
      if (expected !== undefined && BigInt(first) > expected) {
        throw new OffsetGap(`${name} goes on at ${first}, not at ${expected}: the messages between are gone`);
      }
      next.set(name, BigInt(last) + 1n);
    },
  };
}

function offsetOf(offsets: readonly PartitionOffset[], partition: number): bigint {
  return BigInt(offsets.find((offset) => offset.partition === partition)?.offset ?? -1);
}

function boundsOf(offsets: readonly (SeekEntry & { high: string; low: string })[], partition: number): LogBounds {
  const found = offsets.find((offset) => offset.partition === partition);
  if (!found) throw new OffsetGap(`Kafka knows nothing of partition ${partition}`);
  return { low: BigInt(found.low), high: BigInt(found.high) };
}
