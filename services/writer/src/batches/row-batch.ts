import { type MessageKind, ROW_FORMAT } from '@sluice/shared/rows';
import type { KafkaMessage } from 'kafkajs';
import type { DeadLetter } from '../dead-letters/dead-letter.ts';

/** A Kafka message with its partition. */
export interface SourceMessage {
  readonly topic: string;
  readonly partition: number;
  readonly message: KafkaMessage;
}

/** A message of rows, with the bytes as they came. */
export interface RowMessage {
  readonly kind: MessageKind;
  readonly topic: string;
  readonly partition: number;
  readonly offset: string;
  readonly value: Buffer;
}

/** The rows of many messages, by kind. */
export interface RowBatch {
  readonly events: readonly RowMessage[];
  readonly changes: readonly RowMessage[];
  /** Messages that this version cannot read, each as one dead letter. */
  readonly unreadable: readonly DeadLetter[];
}

/** Sorts messages by the kind and the format in their headers. */
export function toRowBatch(messages: readonly SourceMessage[]): RowBatch {
  const events: RowMessage[] = [];
  const changes: RowMessage[] = [];
  const unreadable: DeadLetter[] = [];
  for (const { topic, partition, message } of messages) {
    const { headers, offset } = message;
    const value = message.value ?? Buffer.alloc(0);
    const kind = String(headers?.['kind'] ?? '');
    const format = String(headers?.['format'] ?? '');
    const origin = { topic, partition, offset };
    if (format !== ROW_FORMAT) {
      unreadable.push({ ...origin, kind, format, line: 0, row: value, reason: `the format is not ${ROW_FORMAT}` });
    } else if (kind === 'events') events.push({ ...origin, kind, value });
    else if (kind === 'changes') changes.push({ ...origin, kind, value });
    else unreadable.push({ ...origin, kind, format, line: 0, row: value, reason: 'the kind is not known' });
  }
  return { events, changes, unreadable };
}

/** One row of a message. */
export interface Line {
  readonly message: RowMessage;
  /** Counted from 0. */
  readonly index: number;
  /** With its line feed. */
  readonly bytes: Buffer;
}

/** Returns the rows of messages, in order. */
export function linesOf(messages: readonly RowMessage[]): Line[] {
  return messages.flatMap((message) => {
    const lines: Line[] = [];
    for (let start = 0; start < message.value.length; ) {
      const feed = message.value.indexOf(0x0a, start);
      const end = feed < 0 ? message.value.length : feed + 1;
      lines.push({ message, index: lines.length, bytes: message.value.subarray(start, end) });
      start = end;
    }
    return lines;
  });
}
