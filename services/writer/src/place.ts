import { createHash } from 'node:crypto';
import type { KafkaMessage } from 'kafkajs';

/** Names a partition, in logs and as a key. */
export function nameOf({ topic, partition }: { readonly topic: string; readonly partition: number }): string {
  return `${topic}/${partition}`;
}

/** The record before the next offset of a partition, as it was when it was stored. */
export interface LastRecord {
  readonly fingerprint: string;
  readonly leaderEpoch: number;
}

/** Where a partition goes on. */
export interface Place {
  readonly nextOffset: bigint;
  /** Undefined when nothing was stored yet, or an operator chose the offset. */
  readonly last: LastRecord | undefined;
}

/** Where a partition goes on behind a message that is stored. */
export function placeAfter(message: KafkaMessage): Place {
  return {
    nextOffset: BigInt(message.offset) + 1n,
    last: { fingerprint: fingerprintOf(message), leaderEpoch: leaderEpochOf(message) },
  };
}

/** The epoch of the leader that wrote a message to its log; -1 when the broker does not tell. */
export function leaderEpochOf(message: KafkaMessage): number {
  return message.batchContext?.partitionLeaderEpoch ?? -1;
}

/** Tells a record from any other that may ever stand at its offset. */
export function fingerprintOf(message: KafkaMessage): string {
  const { offset, timestamp, headers, value } = message;
  const entries = Object.entries(headers ?? {}).map(([name, text]) => [name, String(text)]);
  const described = JSON.stringify([offset, timestamp, leaderEpochOf(message), entries.sort()]);
  const hash = createHash('sha256').update(described);
  return hash
    .update(value ?? '')
    .digest('hex')
    .slice(0, 32);
}
