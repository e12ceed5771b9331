import type { MessageKind } from '@sluice/shared/rows';

/** A request's rows for one partition are kept together up to this many UTF-16 code units. */
const TOGETHER_LENGTH_MAX = 32 * 1_024;

/** The topics that hold rows; `topicNames` says what they are called in Kafka. */
export type RowTopic = 'events' | 'entities';

/** A row on its way to Kafka. */
export interface OutgoingRow {
  readonly topic: RowTopic;
  readonly kind: MessageKind;
  /** Chooses the partition: rows with the same hash share one. `all` puts a copy into every partition of the topic. */
  readonly hash: number | 'all';
  /** One line of JSON without its line feed. */
  readonly line: string;
}

/** Rows of one request, of one kind and for one partition, in order. Kafka acknowledges them together. */
export interface PartitionRows {
  readonly topic: RowTopic;
  readonly partition: number;
  readonly kind: MessageKind;
  /** Each row ends with a line feed. */
  readonly lines: Buffer;
}

/** Gathers the rows of one request by partition, and keeps their order within each. */
export interface RowGatherer {
  add(row: OutgoingRow): void;
  /** Returns all rows that were added. Nothing may be added afterwards. */
  finish(): readonly PartitionRows[];
}

/** @param partitionCount the number of partitions of each topic */
export function createRowGatherer(partitionCount: number): RowGatherer {
  const gathered: PartitionRows[] = [];
  /** Lines of one topic and kind, by partition, until there are enough of them. */
  let open: string[] = [];
  let current: Pick<OutgoingRow, 'topic' | 'kind'> | undefined;

  function close(partition: number): void {
    const lines = open[partition];
    if (lines === undefined || !current) return;
    const { topic, kind } = current;
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
      if (row.topic !== current?.topic || row.kind !== current.kind) closeAll();
      current = row;
      if (row.hash !== 'all') append(row.hash % partitionCount, row.line);
      else for (let partition = 0; partition < partitionCount; partition += 1) append(partition, row.line);
    },
    finish() {
      closeAll();
      return gathered;
    },
  };
}
