import { messageHeaders } from '@sluice/shared/rows';
import type { Message } from 'kafkajs';
import type { PendingRow } from './row-publisher.ts';

/** Rows are packed into messages of about this many bytes. */
const MESSAGE_BYTES = 256 * 1_024;

/**
 * What one send may hold for one partition: kafkajs makes one record batch of it, and a broker's default limit of a
 * batch is 1,048,588 bytes (`message.max.bytes`).
 */
const PARTITION_BYTES_MAX = 900 * 1_024;

/** What one send may hold in all. */
const SEND_BYTES_MAX = 8 * 1_024 * 1_024;

/** The rows that one send holds for one partition, in order. */
export interface PartitionBundle {
  readonly topic: string;
  readonly partition: number;
  readonly rows: PendingRow[];
}

/** Takes what one send may hold; the order within a partition stays as it is. */
export function takeBundles(pending: readonly PendingRow[]): { bundles: PartitionBundle[]; rest: PendingRow[] } {
  const open = new Map<string, PartitionBundle & { bytes: number; full: boolean }>();
  const rest: PendingRow[] = [];
  let sendBytes = 0;
  for (const [index, row] of pending.entries()) {
    if (sendBytes >= SEND_BYTES_MAX) {
      rest.push(...pending.slice(index));
      break;
    }
    const key = `${row.topic}/${row.partition}`;
    const bundle = open.get(key) ?? { topic: row.topic, partition: row.partition, rows: [], bytes: 0, full: false };
    open.set(key, bundle);
    bundle.full ||= bundle.bytes > 0 && bundle.bytes + row.bytes > PARTITION_BYTES_MAX;
    if (bundle.full) {
      rest.push(row);
      continue;
    }
    bundle.rows.push(row);
    bundle.bytes += row.bytes;
    sendBytes += row.bytes;
  }
  return { bundles: [...open.values()], rest };
}

/** Packs a bundle into messages, each of rows of one kind, in order. */
export function packMessages({ partition, rows }: PartitionBundle): Message[] {
  const messages: Message[] = [];
  let start = 0;
  let bytes = 0;
  for (const [index, row] of rows.entries()) {
    bytes += row.bytes;
    const next = rows[index + 1];
    if (next && next.kind === row.kind && bytes + next.bytes <= MESSAGE_BYTES) continue;
    const lines = rows.slice(start, index + 1).map(({ line }) => line);
    messages.push({ partition, headers: messageHeaders(row.kind), value: `${lines.join('\n')}\n` });
    start = index + 1;
    bytes = 0;
  }
  return messages;
}
