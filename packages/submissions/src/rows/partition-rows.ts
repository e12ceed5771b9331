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

/** Rows of one topic and kind, by partition, until there are enough of them. */
interface OpenRows {
  readonly kind: MessageKind;
  readonly lines: string[];
}

/** Collects the rows of one request by partition, and keeps their order within each. */
export class RowCollector {
  readonly #partitionCount: number;
  readonly #reserve: (bytes: number) => void;
  readonly #collected: PartitionRows[] = [];
  readonly #open: Record<RowTopic, OpenRows | undefined> = { events: undefined, entities: undefined };

  /**
   * @param partitionCount the number of partitions of each topic
   * @param reserve called as rows are added, with the bytes by which they have grown. To count the bytes of a row would
   * copy it: at first a character counts as one, and what is missing follows once the row is encoded. What it throws,
   * `add` and `finish` throw.
   */
  constructor(partitionCount: number, reserve: (bytes: number) => void) {
    this.#partitionCount = partitionCount;
    this.#reserve = reserve;
  }

  add({ topic, kind, hash, line }: OutgoingRow): void {
    if (this.#open[topic]?.kind !== kind) this.#closeAll(topic);
    const rows = this.#open[topic] ?? { kind, lines: [] };
    this.#open[topic] = rows;
    const count = this.#partitionCount;
    if (hash !== 'all') this.#append(topic, rows, hash % count, line);
    else for (let partition = 0; partition < count; partition += 1) this.#append(topic, rows, partition, line);
  }

  /** Returns all rows that were added. Nothing may be added afterwards. */
  finish(): readonly PartitionRows[] {
    this.#closeAll('events');
    this.#closeAll('entities');
    return this.#collected;
  }

  #append(topic: RowTopic, rows: OpenRows, partition: number, line: string): void {
    this.#reserve(line.length + 1);
    const text = `${rows.lines[partition] ?? ''}${line}\n`;
    rows.lines[partition] = text;
    if (text.length >= TOGETHER_LENGTH_MAX) this.#close(topic, rows, partition);
  }

  #closeAll(topic: RowTopic): void {
    const rows = this.#open[topic];
    if (!rows) return;
    for (let partition = 0; partition < rows.lines.length; partition += 1) this.#close(topic, rows, partition);
    this.#open[topic] = undefined;
  }

  #close(topic: RowTopic, { kind, lines }: OpenRows, partition: number): void {
    const text = lines[partition];
    if (text === undefined) return;
    const encoded = Buffer.from(text);
    this.#reserve(encoded.length - text.length);
    this.#collected.push({ topic, partition, kind, lines: encoded });
    delete lines[partition];
  }
}
