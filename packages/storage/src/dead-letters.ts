import type { ClickHouseClient } from '@sluice/shared/clickhouse/client';
import type { KafkaConfig } from '@sluice/shared/config';
import { sendMessages } from '@sluice/shared/kafka/send-messages';
import { topicNames, withAdmin } from '@sluice/shared/kafka/topics';
import { parseRejectedCall, type RejectedCall } from '@sluice/submissions/calls/rejected-call';
import { type ReplayOptions, rowsOfRejectedCall } from '@sluice/submissions/calls/replay-call';
import { type NobodyConfig, nobodyOf } from '@sluice/submissions/reading/nobody';
import { packMessages } from '@sluice/submissions/rows/message-packing';
import type { Kafka, TopicMessages } from 'kafkajs';
import type { Statement } from './clickhouse/statements.ts';
import type { DeadLetter } from './protocol/dead-letter.ts';

/** The topics, and the limits with which rejected calls are read again. */
export interface ReplayConfig extends Pick<KafkaConfig, 'KAFKA_TOPIC_PREFIX' | 'KAFKA_PARTITIONS'>, NobodyConfig {
  readonly EVENT_BYTES_MAX: number;
  readonly PROPERTIES_PER_SUBMISSION_MAX: number;
}

/** A dead letter as ClickHouse has it, without its row. */
export interface StoredDeadLetter extends Omit<DeadLetter, 'row'> {
  readonly id: string;
  readonly recordedAt: string;
  /** When it was last replayed; null when it was not, or has failed again since then. */
  readonly replayedAt: string | null;
  /** The length of the row. */
  readonly bytes: number;
}

/** When a dead letter was recorded, and replayed. */
export type DeadLetterState = Pick<StoredDeadLetter, 'id' | 'recordedAt' | 'replayedAt'>;

/** A dead letter with its row, byte for byte. */
export interface WholeDeadLetter {
  readonly deadLetter: StoredDeadLetter;
  readonly row: Buffer;
  /** The time of ClickHouse when it was read. */
  readonly readAt: string;
}

export interface ListOptions {
  readonly limit: number;
  /** Also those that were replayed. */
  readonly replayed: boolean;
  /** Only dead letters that come after this one in the list; those that are recorded meanwhile do not. */
  readonly after?: Pick<StoredDeadLetter, 'recordedAt' | 'id'> | undefined;
}

const COLUMNS = `id, toString(recorded_at) AS recordedAt, toString(replayed_at) AS replayedAt, kind, format, topic,
  partition, toString(offset) AS offset, line, reason, length(row) AS bytes`;

/** The statements of a replay: they are those that the simulator knows. */
export const REPLAY_STATEMENTS = {
  read: {
    name: 'read-dead-letter',
    sql: `SELECT ${COLUMNS}, toString(now64(6, 'UTC')) AS readAt, base64Encode(row) AS row64
  FROM dead_letters FINAL WHERE id = {id:String}`,
  },
  // The time of the state is from before the row was sent: when the row has failed again by now, that is the newer state.
  markReplayed: {
    name: 'mark-dead-letter-replayed',
    sql: `INSERT INTO dead_letters
  SELECT * REPLACE (toDateTime64({readAt:String}, 6, 'UTC') AS state_at, now64(3) AS replayed_at)
  FROM dead_letters FINAL WHERE id = {id:String}`,
  },
} as const satisfies Record<string, Statement>;

const LIST = `SELECT ${COLUMNS} FROM dead_letters FINAL
  WHERE (replayed_at IS NULL OR {replayed:Bool})
    AND (recorded_at, id) < ({recordedAt:DateTime64(3, 'UTC')}, {id:String})
  ORDER BY recorded_at DESC, id DESC LIMIT {limit:UInt32}`;

const STATES = `SELECT id, toString(recorded_at) AS recordedAt, toString(replayed_at) AS replayedAt FROM dead_letters FINAL`;

const LIST_THESE = `SELECT ${COLUMNS} FROM dead_letters FINAL WHERE id IN {ids:Array(String)}`;

/** Before the newest dead letter in the list: the end of the range of DateTime64. */
const FIRST = { recordedAt: '2299-12-31 23:59:59.999', id: '' };

const LINE_FEED = Buffer.from('\n');

/** A call that was rejected cannot be taken now either. The message is a sentence. */
export class NotReplayable extends Error {
  override readonly name = 'NotReplayable';
}

/**
 * The dead letters of a ClickHouse server, for the operator. All methods throw ClickHouse's errors. Only `replay`, `send` and
 * `requireEngines` connect to Kafka, and throw kafkajs's errors too.
 */
export class DeadLetters {
  readonly #client: ClickHouseClient;
  readonly #kafka: Kafka;
  readonly #topics: ReturnType<typeof topicNames>;
  readonly #limits: Omit<ReplayOptions, 'id'>;

  constructor(config: ReplayConfig, client: ClickHouseClient, kafka: Kafka) {
    this.#client = client;
    this.#kafka = kafka;
    this.#topics = topicNames(config);
    this.#limits = {
      callBytesMax: config.EVENT_BYTES_MAX,
      propertiesMax: config.PROPERTIES_PER_SUBMISSION_MAX,
      nobody: nobodyOf(config),
      partitionCount: config.KAFKA_PARTITIONS,
      now: Date.now,
    };
  }

  /** Returns the newest first. */
  async list({ limit, replayed, after: { recordedAt, id } = FIRST }: ListOptions): Promise<StoredDeadLetter[]> {
    const query_params = { limit, replayed, recordedAt, id };
    const result = await this.#client.query({ query: LIST, query_params, format: 'JSONEachRow' });
    return await result.json<StoredDeadLetter>();
  }

  /** Returns the states of all dead letters, in any order. */
  async states(): Promise<DeadLetterState[]> {
    const result = await this.#client.query({ query: STATES, format: 'JSONEachRow' });
    return await result.json<DeadLetterState>();
  }

  /** Returns those of some ids, in any order. */
  async listThese(ids: readonly string[]): Promise<StoredDeadLetter[]> {
    if (ids.length === 0) return [];
    const query_params = { ids };
    // In the body: there may be more than an address can name.
    const request = { query: LIST_THESE, query_params, format: 'JSONEachRow', use_multipart_params: true } as const;
    return await (await this.#client.query(request)).json<StoredDeadLetter>();
  }

  /** Returns a dead letter with its row, byte for byte; `undefined` when there is none. */
  async read(id: string): Promise<WholeDeadLetter | undefined> {
    const { sql: query } = REPLAY_STATEMENTS.read;
    const result = await this.#client.query({ query, query_params: { id }, format: 'JSONEachRow' });
    const [found] = await result.json<StoredDeadLetter & { row64: string; readAt: string }>();
    if (!found) return undefined;
    const { row64, readAt, ...deadLetter } = found;
    return { deadLetter, row: Buffer.from(row64, 'base64'), readAt };
  }

  /**
   * Sends a row to the Kafka partition that it came from. The writer stores it unless it is stored already, so replaying
   * twice changes nothing. A row that fails again becomes the same dead letter again. A call that ingest-api rejected is
   * read again, with the present limits, and its rows are sent.
   *
   * @param changedCall the text of the call that is sent in place of the rejected one
   * @returns false when there is no such dead letter
   * @throws {NotReplayable} when the call cannot be taken now either
   */
  async replay(id: string, changedCall?: string): Promise<boolean> {
    const found = await this.read(id);
    if (!found) return false;
    await this.send(found, changedCall);
    await this.markReplayed(found);
    return true;
  }

  /** Sends a row to Kafka, as {@link replay} does. @throws {NotReplayable} */
  async send(found: WholeDeadLetter, changedCall?: string): Promise<void> {
    await sendMessages(
      this.#kafka,
      await this.#messagesOf(found, changedCall),
      `the dead letter ${found.deadLetter.id}`,
    );
  }

  /** Records that a row was replayed. @param found as it was read before it was sent */
  async markReplayed({ deadLetter: { id }, readAt }: WholeDeadLetter): Promise<void> {
    await this.#client.command({ query: REPLAY_STATEMENTS.markReplayed.sql, query_params: { id, readAt } });
  }

  /** @throws when ClickHouse or Kafka does not respond */
  async requireEngines(): Promise<void> {
    await this.#client.command({ query: 'SELECT 1' });
    await withAdmin(this.#kafka, async () => undefined);
  }

  /** Returns what is to be sent, by topic. */
  async #messagesOf({ deadLetter, row }: WholeDeadLetter, changedCall: string | undefined): Promise<TopicMessages[]> {
    const { id, topic, partition, kind, format } = deadLetter;
    if (kind !== 'rejected') {
      if (changedCall !== undefined) throw new NotReplayable('Only a rejected call can be changed.');
      // A message that could not be read is kept whole. With one more line feed, it would be another dead letter.
      const value = row.at(-1) === LINE_FEED[0] ? row : Buffer.concat([row, LINE_FEED]);
      return [{ topic, messages: [{ value, headers: { kind, format }, partition }] }];
    }
    const call = parseRejectedCall(row);
    const sent = call && (changedCall === undefined ? call : changedTo(call, changedCall));
    const rows = sent ? await rowsOfRejectedCall(sent, { ...this.#limits, id }) : 'The row is no rejected call.';
    if (typeof rows === 'string') throw new NotReplayable(rows);
    return rows.map((item) => ({
      topic: this.#topics[item.topic],
      messages: packMessages(item.partition, [item], this.#limits.partitionCount),
    }));
  }
}

/** Returns what another call in place of a rejected one is: whole, and of the same workspace, client, format and time. */
function changedTo({ cut: _, ...rejected }: RejectedCall, call: string): RejectedCall {
  return { ...rejected, call };
}
