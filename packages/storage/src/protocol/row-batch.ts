import { type MessageKind, ROW_FORMAT } from '@sluice/shared/rows';
import { parseRejectedCall } from '@sluice/submissions/calls/rejected-call';
import type { KafkaMessage } from 'kafkajs';
import type { DeadLetter } from './dead-letter.ts';

const LINE_FEED = 0x0a;

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
  return bytes.at(-1) === LINE_FEED ? bytes.subarray(0, -1) : bytes;
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

/**
 * Counts the rows of messages by their bytes: a row is a line that begins and ends as a JSON object does. Returns `undefined`
 * when a line does not. ClickHouse ignores empty lines; `[{…}]` and `{…};` it takes alone, but not among others.
 */
export function countRows(messages: readonly RowMessage[]): number | undefined {
  let rows = 0;
  for (const { value } of messages) {
    for (let start = 0; start < value.length; ) {
      const feed = value.indexOf(LINE_FEED, start);
      const end = feed < 0 ? value.length : feed;
      if (end > start) {
        if (!isObject(value, start, end)) return undefined;
        rows += 1;
      }
      start = end + 1;
    }
  }
  return rows;
}

/** Whether the bytes of a row begin and end as a JSON object does. */
export function isObject(bytes: Buffer, start = 0, end = bytes.length): boolean {
  return bytes[start] === 0x7b && bytes[end - 1] === 0x7d;
}

/** Returns the lines of a message, each with its line feed. */
function splitLines(value: Buffer): Buffer[] {
  const lines: Buffer[] = [];
  for (let start = 0; start < value.length; ) {
    const feed = value.indexOf(LINE_FEED, start);
    const end = feed < 0 ? value.length : feed + 1;
    lines.push(value.subarray(start, end));
    start = end;
  }
  return lines;
}
