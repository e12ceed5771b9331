import type { TopicPartition } from './position.ts';

/** The offsets that a partition's log holds: from `low`, up to but not including `high`. */
export interface LogBounds {
  readonly low: bigint;
  readonly high: bigint;
}

/** Why the log of a partition does not continue what is stored. A person has to decide how to go on. */
export interface LogGap {
  readonly reason: 'messages are gone' | 'the log was cut off' | 'the log is another one' | 'nothing is stored';
  /** What happened, with the offsets. */
  readonly detail: string;
  /** The first and the last offset of the gap; null where they are not known. */
  readonly firstOffset: bigint | null;
  readonly lastOffset: bigint | null;
}

/** A partition that is not stored until an operator resumes it. */
export interface Halt extends TopicPartition {
  readonly reason: LogGap['reason'] | 'by hand';
  /** What happened, for the operator. */
  readonly detail: string;
  /** The first and the last offset of the gap; null where they are not known. */
  readonly firstOffset: bigint | null;
  readonly lastOffset: bigint | null;
}

/** The log begins after the offset that comes next. */
export function messagesGone(name: string, next: bigint, low: bigint): LogGap {
  const detail = `Kafka deleted ${low - next} messages of ${name} before they were stored: offset ${next} comes next, but the log begins at ${low}`;
  return { reason: 'messages are gone', detail, firstOffset: next, lastOffset: low - 1n };
}

/** The log ends before the offset that comes next. */
export function logCutOff(name: string, { low, high }: LogBounds, next: bigint): LogGap {
  const detail = `the log of ${name} was cut off: offset ${next} comes next, but the log holds only the offsets from ${low} up to ${high}`;
  return { reason: 'the log was cut off', detail, firstOffset: high, lastOffset: next - 1n };
}

/** At the offset of the last stored record stands another record. */
export function logReplaced(name: string, nextOffset: bigint): LogGap {
  const detail = `the log of ${name} is not the log that was stored: offset ${nextOffset - 1n} holds another record. The log was cut off and has grown again, or the topic was deleted and created again`;
  return { reason: 'the log is another one', detail, firstOffset: null, lastOffset: nextOffset - 1n };
}

/** ClickHouse has no position of the partition, though there must have been messages before. */
export function nothingStored(name: string, { low, high }: LogBounds, committed: bigint): LogGap {
  const why = committed > 0n ? `the writers have committed offset ${committed}` : `the log begins at offset ${low}`;
  const detail = `ClickHouse has no position of ${name}, but ${why}: what was stored is lost, or it is in another database. Kafka still has the offsets from ${low} up to ${high}`;
  const lastOffset = (committed > low ? committed : low) - 1n;
  return { reason: 'nothing is stored', detail, firstOffset: 0n, lastOffset };
}

/** Returns whether {@link nothingStored} halted a partition. What its group has committed then does not say what is stored. */
export function isNothingStored(halt: Pick<Halt, 'reason'> | undefined): boolean {
  return halt?.reason === 'nothing is stored';
}
