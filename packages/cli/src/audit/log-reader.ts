import { sleep } from '@sluice/shared/base/retry';
import { Refused } from '@sluice/shared/config/command-line';
import type { Admin, KafkaMessage } from 'kafkajs';
import type { Pace } from './pace.ts';

/** How much is read at once, in bytes. */
const FETCH_BYTES = 2 * 1_024 * 1_024;

/** How often an empty response is asked for again before the rest of a partition counts as unreadable. */
const EMPTY_MAX = 50;

const EMPTY_WAIT_MS = 100;

/** A piece of the log: the offsets of a partition from `from` on, before `to`. */
export interface LogPiece {
  readonly topic: string;
  readonly partition: number;
  readonly from: bigint;
  readonly to: bigint;
}

/** Kafka has deleted what was to be read. */
export class LogIsGone extends Refused {}

/**
 * Reads a piece of the log, without a group and without commits.
 *
 * @throws {LogIsGone} when Kafka deletes some of it meanwhile
 * @throws kafkajs's errors
 */
export async function* readLog(admin: Admin, piece: LogPiece, pace: Pace): AsyncGenerator<readonly KafkaMessage[]> {
  const { topic, partition, to } = piece;
  let next = piece.from;
  for (let empty = 0; next < to; ) {
    const messages = await admin.fetchRecords({ topic, partition, offset: String(next), maxBytes: FETCH_BYTES });
    if (!messages)
      throw new LogIsGone(`Kafka no longer has the offset ${next} of ${topic}/${partition}: run the audit again.`);
    const last = messages.at(-1);
    if (!last) {
      empty += 1;
      if (empty > EMPTY_MAX) throw new Error(`Kafka returns no records of ${topic}/${partition} from ${next} on`);
      await sleep(EMPTY_WAIT_MS);
      continue;
    }
    empty = 0;
    next = BigInt(last.offset) + 1n;
    const wanted = next <= to ? messages : messages.filter(({ offset }) => BigInt(offset) < to);
    yield wanted;
    await pace.spent(wanted.reduce((sum, { value }) => sum + (value?.length ?? 0), 0));
  }
}

/** Returns the record at an offset; `undefined` when Kafka no longer has it. @throws kafkajs's errors */
export class RecordReader {
  readonly #admin: Admin;
  readonly #pace: Pace;
  #name = '';
  #records: readonly KafkaMessage[] = [];

  constructor(admin: Admin, pace: Pace) {
    this.#admin = admin;
    this.#pace = pace;
  }

  /** Of offsets in their order, those of one record batch are read once. */
  async read(topic: string, partition: number, offset: string): Promise<KafkaMessage | undefined> {
    const name = `${topic}/${partition}`;
    const known = name === this.#name ? this.#records.find((record) => record.offset === offset) : undefined;
    if (known) return known;
    this.#records = (await this.#admin.fetchRecords({ topic, partition, offset, maxBytes: 1 })) ?? [];
    this.#name = name;
    await this.#pace.spent(this.#records.reduce((sum, { value }) => sum + (value?.length ?? 0), 0));
    return this.#records.find((record) => record.offset === offset);
  }
}
