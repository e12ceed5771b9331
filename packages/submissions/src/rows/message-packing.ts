import { messageHeaders, PARTITIONS_HEADER } from '@sluice/shared/rows';
import type { PartitionRows } from './partition-rows.ts';

/** A message of rows for kafkajs. */
export interface RowMessage {
  readonly partition: number;
  readonly headers: Record<string, string>;
  readonly value: Buffer;
}

/** Rows are packed into messages of about this many bytes. */
const MESSAGE_BYTES = 256 * 1_024;

/**
 * Packs rows of one partition into messages, in order. Each message holds rows of one kind.
 *
 * @param partitionCount the number of partitions over which rows are spread
 * @param more headers of each message
 */
export function packMessages(
  partition: number,
  items: readonly Pick<PartitionRows, 'kind' | 'lines'>[],
  partitionCount: number,
  more: Readonly<Record<string, string>> = {},
): RowMessage[] {
  const messages: RowMessage[] = [];
  let start = 0;
  let bytes = 0;
  for (const [index, item] of items.entries()) {
    bytes += item.lines.length;
    const next = items[index + 1];
    if (next && next.kind === item.kind && bytes + next.lines.length <= MESSAGE_BYTES) continue;
    const lines = items.slice(start, index + 1).map((packed) => packed.lines);
    const headers = { ...messageHeaders(item.kind), [PARTITIONS_HEADER]: String(partitionCount), ...more };
    messages.push({ partition, headers, value: Buffer.concat(lines, bytes) });
    start = index + 1;
    bytes = 0;
  }
  return messages;
}
