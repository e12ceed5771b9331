import { isNothingStored } from '@sluice/storage/protocol/log-gap';
import { nameOf } from '@sluice/storage/protocol/position';
import type { PartitionStatus } from './partitions.ts';

/** Returns which messages are lost by resuming at an offset, in one sentence or two. */
export function whatIsGivenUp(status: PartitionStatus, offset: bigint): string {
  const lost = messagesGivenUp(status, offset);
  if (lost !== undefined) return lost;
  const { low, high, stored, committed, halt } = status;
  const again = isNothingStored(halt) ? high : lowerOf(stored ?? committed ?? low, high);
  if (offset >= again) return 'Nothing is given up.';
  return `Nothing is given up: offsets ${offset} to ${again - 1n} are read again, and each row is stored once.`;
}

/** Returns which messages are lost by resuming at an offset, in a sentence or two; `undefined` when none is. */
export function messagesGivenUp(status: PartitionStatus, offset: bigint): string | undefined {
  const costs = isNothingStored(status.halt) ? neverRead(status, offset) : skipped(status, offset);
  return costs.length > 0 ? costs.join(' ') : undefined;
}

function skipped({ topic, partition, low, stored, committed, halt }: PartitionStatus, offset: bigint): string[] {
  const name = nameOf({ topic, partition });
  const next = stored ?? committed ?? low;
  const isAnotherLog = halt?.reason === 'the log was cut off' || halt?.reason === 'the log is another one';
  const costs: string[] = [];
  if (next < low) {
    costs.push(
      `Offsets ${next} to ${low - 1n} of ${name} were deleted by Kafka before they were stored: ${low - next} messages.`,
    );
  }
  const firstSkipped = isAnotherLog || next < low ? low : next;
  if (offset > firstSkipped) {
    const doubt = isAnotherLog ? ', some of which may be new and not stored yet' : '';
    costs.push(
      `Offsets ${firstSkipped} to ${offset - 1n} of ${name} are in the log and are left out: ${offset - firstSkipped} messages${doubt}.`,
    );
  }
  if (isAnotherLog) costs.push('Messages that were cut off the log before they were stored are lost already.');
  return costs;
}

/** What is not read when a partition of which ClickHouse has no position resumes at an offset. */
function neverRead({ topic, partition, low }: PartitionStatus, offset: bigint): string[] {
  const name = nameOf({ topic, partition });
  const left: string[] = [];
  if (low > 0n) left.push(`Offsets 0 to ${low - 1n} of ${name} are no longer in Kafka: ${low} messages.`);
  if (offset > low) {
    left.push(`Offsets ${low} to ${offset - 1n} of ${name} are in the log and are left out: ${offset - low} messages.`);
  }
  return left.length > 0 ? [...left, 'They are missing unless ClickHouse has their rows.'] : [];
}

function lowerOf(one: bigint, other: bigint): bigint {
  return one < other ? one : other;
}
