import { ensureTopics, topicNames, withAdmin } from '@sluice/shared/kafka/topics';
import type { Part } from '@sluice/shared/lifecycle';
import type { Logger } from '@sluice/shared/log';
import { backoff, retry, sleep } from '@sluice/shared/sleep';
import kafkajs, { type Kafka, type Producer, type RecordMetadata } from 'kafkajs';
import type { IngestConfig } from './config.ts';
import { type PartitionBundle, type PendingRows, packMessages, placeRows, takeBundles } from './row-packing.ts';
import type { OutgoingRow } from './submission-rows.ts';

/** kafkajs waits this long for the brokers' acknowledgement of one request, in milliseconds. */
const ACK_TIMEOUT_MS = 5_000;

/** Rows were not acknowledged in time: they may be stored or not, and sending them again is right. */
export class PublishTimeout extends Error {
  override readonly name = 'PublishTimeout';
}

export interface RowPublisher extends Part {
  /**
   * Resolves once Kafka has acknowledged every row on all in-sync replicas.
   *
   * @throws {PublishTimeout} after `PRODUCE_TIMEOUT_MS`
   */
  publish(rows: readonly OutgoingRow[]): Promise<void>;
  /** Whether the topics are known, so that rows can be sent. */
  readonly connected: boolean;
}

/** A request that waits for Kafka. */
export interface Waiter {
  /** How many of its {@link PendingRows} are not acknowledged. */
  remaining: number;
  expired: boolean;
  acknowledged(): void;
}

/**
 * Gathers the rows of many requests for `PRODUCE_LINGER_MS` and sends them as few messages, one send at a time: while
 * one is under way the next is gathered. A send that fails is repeated until the requests in it have given up.
 */
export function createRowPublisher(kafka: Kafka, config: IngestConfig, logger: Logger): RowPublisher {
  const names = topicNames(config);
  // Not idempotent: that producer of kafkajs can reuse a sequence number after a failed send, and the broker then drops
  // an acknowledged message. A repeated row costs nothing, since the writer stores each once.
  const producer: Producer = kafka.producer({
    allowAutoTopicCreation: false,
    idempotent: false,
    retry: { initialRetryTime: 100, retries: 1 },
    // Every message names its partition: a partitioner that chose would choose again when kafkajs retries.
    createPartitioner:
      () =>
      ({ message }) =>
        message.partition ?? 0,
  });
  const stopping = new AbortController();
  let partitionCounts: Readonly<Record<OutgoingRow['topic'], number>> | undefined;
  let connecting: Promise<void> | undefined;
  let unplaced: { rows: readonly OutgoingRow[]; waiter: Waiter }[] = [];
  let pending: PendingRows[] = [];
  /** Whether the last send left something out: then the next one does not wait for more. */
  let behind = false;
  let sending: Promise<void> | undefined;

  async function connect(): Promise<void> {
    await ensureTopics(kafka, config);
    await producer.connect();
    partitionCounts = await countPartitions(kafka, config);
    logger.info({ partitions: partitionCounts }, 'connected to Kafka');
    schedule();
  }

  async function connectOnceReachable(): Promise<void> {
    await retry(connect, {
      firstMs: 200,
      maxMs: 5_000,
      signal: stopping.signal,
      onFailure: (error) => logger.warn({ reason: (error as Error).message }, 'Kafka cannot be reached yet'),
    }).catch((error) => {
      if (!stopping.signal.aborted) throw error;
    });
  }

  function place(counts: NonNullable<typeof partitionCounts>): void {
    for (const { rows, waiter } of unplaced) {
      const placed = placeRows(rows, counts, waiter);
      waiter.remaining = placed.length;
      pending.push(...placed);
    }
    unplaced = [];
  }

  function schedule(): void {
    if (sending || !partitionCounts || unplaced.length + pending.length === 0) return;
    sending = sendPending(partitionCounts).finally(() => {
      sending = undefined;
      schedule();
    });
  }

  async function sendPending(counts: NonNullable<typeof partitionCounts>): Promise<void> {
    if (!behind) await sleep(config.PRODUCE_LINGER_MS);
    place(counts);
    const taken = takeBundles(pending.filter(({ waiter }) => !waiter.expired));
    pending = taken.rest;
    behind = pending.length > 0;
    await sendUntilAcknowledged(taken.bundles);
  }

  async function sendUntilAcknowledged(bundles: readonly PartitionBundle[]): Promise<void> {
    let left = bundles;
    for (const delayMs of backoff(50, 1_000)) {
      left = left.filter(({ items }) => items.some(({ waiter }) => !waiter.expired));
      if (left.length === 0) return;
      try {
        const acknowledged = await send(left);
        const missing = left.filter(({ topic, partition }) => !acknowledged.has(`${names[topic]}/${partition}`));
        for (const bundle of left) {
          if (!missing.includes(bundle)) for (const { waiter } of bundle.items) waiter.acknowledged();
        }
        if (missing.length > 0)
          logger.warn({ partitions: missing.length }, 'a send left partitions out; sending them again');
        left = missing;
      } catch (error) {
        logger.warn({ reason: (error as Error).message }, 'sending to Kafka failed; trying again');
      }
      if (left.length > 0) await sleep(delayMs);
    }
  }

  /** Gives the partitions that acknowledged: after a leader moves, kafkajs resolves without having sent to all. */
  async function send(bundles: readonly PartitionBundle[]): Promise<ReadonlySet<string>> {
    const byTopic = Map.groupBy(bundles, ({ topic }) => topic);
    const metadata: RecordMetadata[] = await producer.sendBatch({
      acks: -1,
      timeout: ACK_TIMEOUT_MS,
      compression: COMPRESSION[config.KAFKA_COMPRESSION],
      topicMessages: [...byTopic].map(([topic, ofTopic]) => ({
        topic: names[topic],
        messages: ofTopic.flatMap(packMessages),
      })),
    });
    return new Set(
      metadata
        .filter(({ errorCode }) => errorCode === 0)
        .map(({ topicName, partition }) => `${topicName}/${partition}`),
    );
  }

  return {
    name: 'Kafka producer',
    get connected() {
      return partitionCounts !== undefined;
    },
    async start() {
      // In the background: the service is alive, though not ready, while Kafka is away.
      connecting ??= connectOnceReachable();
    },
    publish(rows) {
      const { promise, resolve, reject } = Promise.withResolvers<void>();
      const timer = setTimeout(() => {
        waiter.expired = true;
        reject(new PublishTimeout('Kafka has not acknowledged the rows in time'));
      }, config.PRODUCE_TIMEOUT_MS);
      const waiter: Waiter = {
        remaining: 0,
        expired: false,
        acknowledged() {
          waiter.remaining -= 1;
          if (waiter.remaining > 0) return;
          clearTimeout(timer);
          resolve();
        },
      };
      unplaced.push({ rows, waiter });
      if (partitionCounts) place(partitionCounts);
      schedule();
      return promise;
    },
    async stop() {
      stopping.abort();
      await connecting;
      while (sending) await sending;
      await producer.disconnect();
    },
  };
}

const COMPRESSION = {
  none: kafkajs.CompressionTypes.None,
  gzip: kafkajs.CompressionTypes.GZIP,
  zstd: kafkajs.CompressionTypes.ZSTD,
} as const;

async function countPartitions(kafka: Kafka, config: IngestConfig): Promise<{ events: number; entities: number }> {
  const names = topicNames(config);
  return await withAdmin(kafka, async (admin) => {
    const { topics } = await admin.fetchTopicMetadata({ topics: Object.values(names) });
    const count = (topic: string) => topics.find(({ name }) => name === topic)?.partitions.length ?? 0;
    return { events: count(names.events), entities: count(names.entities) };
  });
}
