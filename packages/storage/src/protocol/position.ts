import { createHash } from 'node:crypto';
import type { KafkaMessage } from 'kafkajs';

export interface TopicPartition {
  readonly topic: string;
  readonly partition: number;
}

/** Returns the name of a partition, such as `sluice.events/3`: for logs, and as a key of maps. */
export function nameOf({ topic, partition }: TopicPartition): string {
  return `${topic}/${partition}`;
}

/** The record before the next offset of a partition, as it was when it was stored. */
export interface LastRecord {
  readonly fingerprint: string;
  readonly leaderEpoch: number;
}

/** Where a partition goes on. */
export interface Position {
  readonly nextOffset: bigint;
  /** Undefined when nothing was stored yet, or when an operator chose the offset: then the committed offset is ignored. */
  readonly last: LastRecord | undefined;
}

/** Returns the position of a partition after this message is stored. */
export function positionAfter(message: KafkaMessage): Position {
  return {
    nextOffset: BigInt(message.offset) + 1n,
    last: { fingerprint: fingerprintOf(message), leaderEpoch: leaderEpochOf(message) },
  };
}

/** Returns the epoch of the leader that wrote a message to its log; -1 when the broker does not send it. */
export function leaderEpochOf(message: KafkaMessage): number {
  return message.batchContext?.partitionLeaderEpoch ?? -1;
}

/** Returns a hash that tells a record from any other record that may ever stand at its offset. */
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
