/** A record of a simulated log, as kafkajs decodes it. */
export interface LogRecord {
  readonly offset: string;
  /** In milliseconds since 1970. */
  readonly timestamp: string;
  readonly headers: Readonly<Record<string, Buffer>>;
  readonly key: null;
  readonly value: Buffer;
  readonly attributes: number;
  readonly magicByte: number;
  readonly isControlRecord: boolean;
  readonly batchContext: { readonly partitionLeaderEpoch: number };
}

/** What a producer sends. */
export interface NewRecord {
  readonly headers: Readonly<Record<string, string>>;
  readonly value: Buffer;
}

/** The largest record batch that a broker takes by default, in bytes. */
const BATCH_BYTES_MAX = 1_048_588;

/** The log of one partition. Its records are those from offset `low` up to, but not including `high`; some may be missing. */
export class PartitionLog {
  readonly topic: string;
  readonly partition: number;
  /** The node that leads it; -1 while none does. */
  leader: number;
  leaderEpoch = 0;
  low = 0;
  /** The offset of the next record. */
  high = 0;
  /** The largest record batch that it takes, in bytes. */
  batchBytesMax = BATCH_BYTES_MAX;
  /** Whether it takes the time of the broker as that of its records. */
  isStampedByBroker = true;
  /** Whether its replicas follow: all, too slowly to acknowledge anything, or so few that nothing is taken. */
  replicas: 'in sync' | 'slow' | 'too few' = 'in sync';
  #records: LogRecord[] = [];

  constructor(topic: string, partition: number, leader: number) {
    this.topic = topic;
    this.partition = partition;
    this.leader = leader;
  }

  get records(): readonly LogRecord[] {
    return this.#records;
  }

  append({ headers, value }: NewRecord, timestampMs: number): LogRecord {
    const record: LogRecord = {
      offset: String(this.high),
      timestamp: String(timestampMs),
      headers: Object.fromEntries(Object.entries(headers).map(([name, text]) => [name, Buffer.from(text)])),
      key: null,
      value,
      attributes: 0,
      magicByte: 2,
      isControlRecord: false,
      batchContext: { partitionLeaderEpoch: this.leaderEpoch },
    };
    this.#records.push(record);
    this.high += 1;
    return record;
  }

  /** Returns the records from an offset on. */
  from(offset: number): readonly LogRecord[] {
    const index = this.#records.findIndex((record) => Number(record.offset) >= offset);
    return index < 0 ? [] : this.#records.slice(index);
  }

  /** Another node leads the log. */
  elect(leader: number): void {
    this.leader = leader;
    this.leaderEpoch += 1;
  }

  /** Retention deletes the records before an offset. Returns what is deleted. */
  deleteBefore(offset: number): readonly LogRecord[] {
    this.low = Math.min(Math.max(offset, this.low), this.high);
    const deleted = this.#records.filter((record) => Number(record.offset) < this.low);
    this.#records = this.#records.slice(deleted.length);
    return deleted;
  }

  /** The log loses one of its records, and keeps those around it: a file was damaged. Returns what is lost. */
  remove(offset: number): readonly LogRecord[] {
    const lost = this.#records.filter((record) => record.offset === String(offset));
    this.#records = this.#records.filter((record) => !lost.includes(record));
    return lost;
  }

  /** The log loses its records from an offset on: a leader was elected that did not have them. Returns what is lost. */
  cutOff(offset: number): readonly LogRecord[] {
    const lost = this.from(offset);
    this.high = Math.min(Math.max(offset, this.low), this.high);
    this.#records = this.#records.slice(0, this.#records.length - lost.length);
    this.leaderEpoch += 1;
    return lost;
  }
}
