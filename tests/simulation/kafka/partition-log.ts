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

/** The log of one partition. Its records are those from offset `low` up to, but not including `high`. */
export class PartitionLog {
  readonly topic: string;
  readonly partition: number;
  /** The node that leads it; -1 while none does. */
  leader: number;
  leaderEpoch = 0;
  low = 0;
  #records: LogRecord[] = [];

  constructor(topic: string, partition: number, leader: number) {
    this.topic = topic;
    this.partition = partition;
    this.leader = leader;
  }

  get high(): number {
    return this.low + this.#records.length;
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
    return record;
  }

  /** Returns the records from an offset on. */
  from(offset: number): readonly LogRecord[] {
    return this.#records.slice(Math.max(0, offset - this.low));
  }

  /** Another node leads the log. */
  elect(leader: number): void {
    this.leader = leader;
    this.leaderEpoch += 1;
  }

  /** Retention deletes the records before an offset. */
  deleteBefore(offset: number): void {
    const low = Math.min(Math.max(offset, this.low), this.high);
    this.#records = this.#records.slice(low - this.low);
    this.low = low;
  }

  /** The log loses its records from an offset on: a leader was elected that did not have them. Returns what is lost. */
  cutOff(offset: number): readonly LogRecord[] {
    const lost = this.from(offset);
    this.#records = this.#records.slice(0, Math.max(0, offset - this.low));
    this.leaderEpoch += 1;
    return lost;
  }
}
