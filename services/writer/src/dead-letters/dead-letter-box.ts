import type { ClickHouseClient } from '@sluice/shared/clickhouse/client';
import type { Kafka } from 'kafkajs';
import type { DeadLetter } from './dead-letter.ts';

/** A dead letter as the command shows it. */
export interface KeptLetter extends Omit<DeadLetter, 'row'> {
  readonly id: string;
  readonly recordedAt: string;
  /** When it was last sent to Kafka again; null when it has not been since it failed. */
  readonly replayedAt: string | null;
  readonly bytes: number;
}

export interface DeadLetterBox {
  /** The newest letters first; those that were replayed only when asked for. */
  list(options: { readonly limit: number; readonly replayed: boolean }): Promise<KeptLetter[]>;
  /** A letter and its row, byte for byte; `undefined` when there is none. */
  read(id: string): Promise<{ letter: KeptLetter; row: Buffer } | undefined>;
  /**
   * Sends a letter to the partition that it came from. The writer stores what it holds unless it is stored already, so
   * doing so twice changes nothing; a row that fails again becomes the same letter again. False when there is none.
   */
  replay(id: string): Promise<boolean>;
}

const COLUMNS = `id, toString(recorded_at) AS recordedAt, toString(replayed_at) AS replayedAt, kind, format, topic,
  partition, toString(offset) AS offset, line, reason, length(row) AS bytes`;

/** The letters in ClickHouse; replaying needs Kafka. */
export function createDeadLetterBox(client: ClickHouseClient, kafka: Kafka): DeadLetterBox {
  async function read(id: string): Promise<{ letter: KeptLetter; row: Buffer } | undefined> {
    const result = await client.query({
      query: `SELECT ${COLUMNS}, base64Encode(row) AS row64 FROM dead_letters FINAL WHERE id = {id:String}`,
      query_params: { id },
      format: 'JSONEachRow',
    });
    const [found] = await result.json<KeptLetter & { row64: string }>();
    if (!found) return undefined;
    const { row64, ...letter } = found;
    return { letter, row: Buffer.from(row64, 'base64') };
  }

  return {
    read,
    async list({ limit, replayed }) {
      const result = await client.query({
        query: `SELECT ${COLUMNS} FROM dead_letters FINAL
          WHERE replayed_at IS NULL OR {replayed:Bool}
          ORDER BY recorded_at DESC, id LIMIT {limit:UInt32}`,
        query_params: { limit, replayed },
        format: 'JSONEachRow',
      });
      return await result.json<KeptLetter>();
    },
    async replay(id) {
      const found = await read(id);
      if (!found) return false;
      const { letter, row } = found;
      const value = Buffer.concat([row, Buffer.from('\n')]);
      const headers = { kind: letter.kind, format: letter.format };
      const producer = kafka.producer({ allowAutoTopicCreation: false, idempotent: false });
      await producer.connect();
      try {
        const { topic, partition } = letter;
        const messages = [{ value, headers, partition }];
        const [metadata] = await producer.send({ topic, acks: -1, messages });
        if (metadata?.errorCode !== 0) throw new Error(`Kafka has not acknowledged the letter ${id}`);
      } finally {
        await producer.disconnect();
      }
      await client.command({
        query: `INSERT INTO dead_letters
          SELECT * REPLACE (now64(6) AS state_at, now64(3) AS replayed_at) FROM dead_letters FINAL WHERE id = {id:String}`,
        query_params: { id },
      });
      return true;
    },
  };
}
