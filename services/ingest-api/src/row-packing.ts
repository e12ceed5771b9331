import { type MessageKind, messageHeaders } from '@sluice/shared/rows';
import type { Message } from 'kafkajs';
import type { Waiter } from './row-publisher.ts';
import type { OutgoingRow } from './submission-rows.ts';

/** Rows are packed into messages of about this many bytes. */
const MESSAGE_BYTES = 256 * 1_024;

/**
 * What one send may hold for one partition: kafkajs makes one record batch of it, and a broker's default limit of a
 * batch is 1,048,588 bytes (`message.max.bytes`).
 */
const PARTITION_BYTES_MAX = 900 * 1_024;

/** What one send may hold in all. */
const SEND_BYTES_MAX = 8 * 1_024 * 1_024;

/**
 * A request's rows for one partition stay together up to this many UTF-16 code units, which are at most 96 KiB, and the
 * row that reaches it: far from what one send may hold.
 */
const TOGETHER_LENGTH_MAX = 32 * 1_024;

/** Rows of one request that go to one partition, in order: what is sent, and acknowledged, together. */
export interface PendingRows {
  readonly topic: OutgoingRow['topic'];
  readonly partition: number;
  readonly kind: MessageKind;
  /** Each row ends with a line feed. */
  readonly lines: string;
  readonly bytes: number;
  readonly waiter: Waiter;
}

/** What one send holds for one partition, in order. */
export interface PartitionBundle {
  readonly topic: OutgoingRow['topic'];
  readonly partition: number;
  readonly items: PendingRows[];
}

/** Gives each row its partition. The order within a partition is that of `rows`. */
export function placeRows(
  rows: readonly OutgoingRow[],
  partitionCounts: Readonly<Record<OutgoingRow['topic'], number>>,
  waiter: Waiter,
): PendingRows[] {
  const placed: PendingRows[] = [];
  // The lines that are still being gathered, by partition, of rows that are alike.
  let open: string[] = [];
  let alike: OutgoingRow | undefined;

  function close(partition: number): void {
    const lines = open[partition];
    if (lines === undefined || !alike) return;
    const { topic, kind } = alike;
    placed.push({ topic, partition, kind, lines, bytes: Buffer.byteLength(lines), waiter });
    delete open[partition];
  }

  function closeAll(): void {
    for (let partition = 0; partition < open.length; partition += 1) close(partition);
    open = [];
  }

  function add(partition: number, line: string): void {
    const lines = `${open[partition] ?? ''}${line}\n`;
    open[partition] = lines;
    if (lines.length >= TOGETHER_LENGTH_MAX) close(partition);
  }

  for (const row of rows) {
    if (row.topic !== alike?.topic || row.kind !== alike.kind) closeAll();
    alike = row;
    const count = partitionCounts[row.topic];
    if (row.hash !== 'all') add(row.hash % count, row.line);
    else for (let partition = 0; partition < count; partition += 1) add(partition, row.line);
  }
  closeAll();
  return placed;
}

/** Takes what one send may hold; the order within a partition stays as it is. */
export function takeBundles(pending: readonly PendingRows[]): { bundles: PartitionBundle[]; rest: PendingRows[] } {
  const open = new Map<string, PartitionBundle & { bytes: number; full: boolean }>();
  const rest: PendingRows[] = [];
  let sendBytes = 0;
  for (const [index, item] of pending.entries()) {
    if (sendBytes >= SEND_BYTES_MAX) {
      rest.push(...pending.slice(index));
      break;
    }
    const key = `${item.topic}/${item.partition}`;
    const bundle = open.get(key) ?? { topic: item.topic, partition: item.partition, items: [], bytes: 0, full: false };
    open.set(key, bundle);
    bundle.full ||= bundle.bytes > 0 && bundle.bytes + item.bytes > PARTITION_BYTES_MAX;
    if (bundle.full) {
      rest.push(item);
      continue;
    }
    bundle.items.push(item);
    bundle.bytes += item.bytes;
    sendBytes += item.bytes;
  }
  return { bundles: [...open.values()], rest };
}

/** Packs a bundle into messages, each of rows of one kind, in order. */
export function packMessages({ partition, items }: PartitionBundle): Message[] {
  const messages: Message[] = [];
  let start = 0;
  let bytes = 0;
  for (const [index, item] of items.entries()) {
    bytes += item.bytes;
    const next = items[index + 1];
    if (next && next.kind === item.kind && bytes + next.bytes <= MESSAGE_BYTES) continue;
    const value = concatenate(items.slice(start, index + 1), bytes);
    messages.push({ partition, headers: messageHeaders(item.kind), value });
    start = index + 1;
    bytes = 0;
  }
  return messages;
}

function concatenate(items: readonly PendingRows[], bytes: number): Buffer {
  const value = Buffer.allocUnsafe(bytes);
  let offset = 0;
  for (const { lines } of items) offset += value.write(lines, offset);
  return value;
}
