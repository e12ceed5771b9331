import { randomUUID } from 'node:crypto';
import { createLogger } from '@sluice/shared/base/log';
import { createKafka } from '@sluice/shared/kafka/client';
import { TooLate } from '@sluice/shared/testing/until';

const TIMEOUT_MS = 60_000;

/** A row of a message in Kafka. */
export interface KafkaRow {
  readonly partition: number;
  readonly offset: string;
  /** Its index in its message. */
  readonly line: number;
  readonly row: Readonly<Record<string, unknown>>;
  /** The kind of rows that its message has. */
  readonly kind: string;
  /** The names of its message's headers. */
  readonly headers: readonly string[];
}

/**
 * Reads the rows of a topic from its beginning until `enough` returns true, and returns them.
 *
 * @throws {TooLate} after a minute without another row
 */
export async function readRows(
  brokers: readonly string[],
  topic: string,
  enough: (rows: readonly KafkaRow[]) => boolean,
): Promise<readonly KafkaRow[]> {
  const config = { KAFKA_BROKERS: [...brokers], KAFKA_TOPIC_PREFIX: '', KAFKA_PARTITIONS: 1, KAFKA_SSL: false };
  const kafka = createKafka(config, 'test-reader', createLogger('test', 'silent'));
  const consumer = kafka.consumer({ groupId: `reader-${randomUUID()}`, maxWaitTimeInMs: 100 });
  const rows: KafkaRow[] = [];
  const done = Promise.withResolvers<void>();
  const timer = setTimeout(() => done.reject(new TooLate(`${topic} has only ${rows.length} rows`)), TIMEOUT_MS);
  try {
    await consumer.connect();
    await consumer.subscribe({ topics: [topic], fromBeginning: true });
    await consumer.run({
      eachMessage: async ({ partition, message: { offset, value, headers = {} } }) => {
        for (const [line, text] of String(value).trimEnd().split('\n').entries()) {
          const row = JSON.parse(text) as Record<string, unknown>;
          rows.push({ partition, offset, line, row, kind: String(headers['kind']), headers: Object.keys(headers) });
        }
        timer.refresh();
        if (enough(rows)) done.resolve();
      },
    });
    await done.promise;
    return rows;
  } finally {
    clearTimeout(timer);
    await consumer.disconnect();
  }
}
