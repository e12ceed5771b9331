import { type MessageKind, messageHeaders } from '@sluice/shared/rows';
import type { Message } from 'kafkajs';

/** Rows are packed into messages of about this many bytes. */
const MESSAGE_BYTES = 256 * 1_024;

/**
 * The largest row, in bytes. kafkajs makes one record batch of what one send holds for a partition, and a broker takes
 * batches of 1,048,588 bytes by default (`message.max.bytes`).
 */
export const ROW_BYTES_MAX = 800 * 1_024;

/** A request's rows for one partition are kept together up to this many UTF-16 code units. */
const TOGETHER_LENGTH_MAX = 32 * 1_024;

/** The number of partitions over which rows are spread, by topic. */
export type PartitionCounts = Readonly<Record<'events' | 'entities', number>>;

/** A row on its way to Kafka. */
export interface OutgoingRow {
  readonly topic: keyof PartitionCounts;
  readonly kind: MessageKind;
  /** Chooses the partition: rows of equal hash share one. `all` puts a copy into every partition of the topic. */
  readonly hash: number | 'all';
  /** One line of JSON without its line feed. */
  readonly line: string;
}

/** Rows of one request and one kind for one partition, in order: they are sent, and acknowledged, together. */
export interface PartitionRows {
  readonly topic: OutgoingRow['topic'];
  readonly partition: number;
  readonly kind: MessageKind;
  /** Each row ends with a line feed. */
  readonly lines: Buffer;
}

/** Gathers the rows of one request by partition. The order within a partition stays as it is. */
export interface RowGatherer {
  add(row: OutgoingRow): void;
  /** All rows that were added; nothing may be added after it. */
  finish(): readonly PartitionRows[];
}

export function createRowGatherer(partitionCounts: PartitionCounts): RowGatherer {
  const gathered: PartitionRows[] = [];
  /** The lines of rows that are alike, by partition, until there are enough of them. */
  let open: string[] = [];
  let alike: Pick<OutgoingRow, 'topic' | 'kind'> | undefined;

  function close(partition: number): void {
    const lines = open[partition];
    if (lines === undefined || !alike) return;
    const { topic, kind } = alike;
    gathered.push({ topic, partition, kind, lines: Buffer.from(lines) });
    delete open[partition];
  }

  function closeAll(): void {
    for (let partition = 0; partition < open.length; partition += 1) close(partition);
    open = [];
  }

  function append(partition: number, line: string): void {
    const lines = `${open[partition] ?? ''}${line}\n`;
    open[partition] = lines;
    if (lines.length >= TOGETHER_LENGTH_MAX) close(partition);
  }

  return {
    add(row) {
      if (row.topic !== alike?.topic || row.kind !== alike.kind) closeAll();
      alike = row;
      const count = partitionCounts[row.topic];
      if (row.hash !== 'all') append(row.hash % count, row.line);
      else for (let partition = 0; partition < count; partition += 1) append(partition, row.line);
    },
    finish() {
      closeAll();
      return gathered;
    },
  };
}

/** Packs rows of one partition into messages, each of rows of one kind, in order. */
export function packMessages(partition: number, items: readonly Pick<PartitionRows, 'kind' | 'lines'>[]): Message[] {
  const messages: Message[] = [];
  let start = 0;
  let bytes = 0;
  for (const [index, item] of items.entries()) {
    bytes += item.lines.length;
    const next = items[index + 1];
    if (next && next.kind === item.kind && bytes + next.lines.length <= MESSAGE_BYTES) continue;
    const lines = items.slice(start, index + 1).map((packed) => packed.lines);
    messages.push({ partition, headers: messageHeaders(item.kind), value: Buffer.concat(lines, bytes) });
    start = index + 1;
    bytes = 0;
  }
  return messages;
}
