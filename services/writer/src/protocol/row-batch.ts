import { type MessageKind, ROW_FORMAT } from '@sluice/shared/rows';
import { parseRejectedCall } from '@sluice/submissions/calls/rejected-call';
import type { KafkaMessage } from 'kafkajs';
import type { DeadLetter } from './dead-letter.ts';

/** A Kafka message with its partition. */
export interface SourceMessage {
  readonly topic: string;
  readonly partition: number;
  readonly message: KafkaMessage;
}

/** A message of rows, with the bytes as they came. */
export interface RowMessage {
  readonly kind: Exclude<MessageKind, 'rejected'>;
  readonly topic: string;
  readonly partition: number;
  readonly offset: string;
  readonly value: Buffer;
}

/** The rows of many messages, by kind. */
export interface RowBatch {
  readonly events: readonly RowMessage[];
  readonly changes: readonly RowMessage[];
  /** Messages that this version cannot read, and calls that ingest-api rejected. */
  readonly deadLetters: readonly DeadLetter[];
}

/** Sorts messages by the kind and the format in their headers. */
export function toRowBatch(messages: readonly SourceMessage[]): RowBatch {
  const events: RowMessage[] = [];
  const changes: RowMessage[] = [];
  const deadLetters: DeadLetter[] = [];
  for (const { topic, partition, message } of messages) {
    const { headers, offset } = message;
    const value = message.value ?? Buffer.alloc(0);
    const kind = String(headers?.['kind'] ?? '');
    const format = String(headers?.['format'] ?? '');
    const origin = { topic, partition, offset };
    if (format !== ROW_FORMAT) {
      deadLetters.push({ ...origin, kind, format, line: 0, row: value, reason: `the format is not ${ROW_FORMAT}` });
    } else if (kind === 'events') events.push({ ...origin, kind, value });
    else if (kind === 'changes') changes.push({ ...origin, kind, value });
    else if (kind === 'rejected') deadLetters.push(...rejectedCalls(origin, value));
    else deadLetters.push({ ...origin, kind, format, line: 0, row: value, reason: 'the kind is not known' });
  }
  return { events, changes, deadLetters };
}

function rejectedCalls(origin: Omit<RowMessage, 'kind' | 'value'>, value: Buffer): DeadLetter[] {
  return splitLines(value).map((bytes, line) => {
    const row = withoutLineFeed(bytes);
    const reason = parseRejectedCall(row)?.reason ?? 'the row is no rejected call';
    return { ...origin, kind: 'rejected', format: ROW_FORMAT, line, row, reason };
  });
}

/** Returns a row without its line feed. */
export function withoutLineFeed(bytes: Buffer): Buffer {
  return bytes.at(-1) === 0x0a ? bytes.subarray(0, -1) : bytes;
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
  return messages.flatMap((message) => splitLines(message.value).map((bytes, index) => ({ message, index, bytes })));
}

/** Returns the lines of a message, each with its line feed. */
function splitLines(value: Buffer): Buffer[] {
  const lines: Buffer[] = [];
  for (let start = 0; start < value.length; ) {
    const feed = value.indexOf(0x0a, start);
    const end = feed < 0 ? value.length : feed + 1;
    lines.push(value.subarray(start, end));
    start = end;
  }
  return lines;
}
