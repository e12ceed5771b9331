import type { Logger } from '@sluice/shared/log';
import { packMessages } from '@sluice/submissions/rows/message-packing';
import kafkajs, { type Kafka, type Producer, type RecordMetadata } from 'kafkajs';
import type { IngestConfig } from '../config.ts';
import type { IngestMetrics } from '../metrics.ts';
import type { QueuedRows } from './partition-queue.ts';
import type { TopicPartition } from './topic-partition.ts';

/** How long kafkajs waits for the brokers' acknowledgement of one request, in milliseconds. */
const ACK_TIMEOUT_MS = 5_000;

const COMPRESSION = {
  none: kafkajs.CompressionTypes.None,
  gzip: kafkajs.CompressionTypes.GZIP,
  zstd: kafkajs.CompressionTypes.ZSTD,
} as const;

/** What one send holds for one partition. */
export interface Bundle {
  readonly target: TopicPartition;
  readonly items: readonly QueuedRows[];
}

export interface BatchSenderOptions {
  readonly kafka: Kafka;
  readonly compression: IngestConfig['KAFKA_COMPRESSION'];
  /** The number of partitions of each topic. */
  readonly partitionCount: number;
  readonly metrics: Pick<IngestMetrics, 'lostMessages'>;
  readonly logger: Logger;
}

/** Sends rows with kafkajs, and finds out for each partition whether Kafka has acknowledged them. */
export class BatchSender {
  readonly #producer: Producer;
  readonly #options: BatchSenderOptions;

  constructor(options: BatchSenderOptions) {
    this.#options = options;
    this.#producer = createProducer(options.kafka);
  }

  async connect(): Promise<void> {
    await this.#producer.connect();
  }

  async disconnect(): Promise<void> {
    await this.#producer.disconnect();
  }

  /**
   * Sends the bundles as one request and reports their rows as acknowledged. It never throws.
   *
   * @returns the bundles that were not acknowledged: after a leader has moved, kafkajs resolves without them
   */
  async send(bundles: readonly Bundle[]): Promise<readonly Bundle[]> {
    const { logger } = this.#options;
    try {
      const acknowledged = await this.#sendBatch(bundles);
      const rest = bundles.filter(({ target }) => {
        const metadata = acknowledged.get(target);
        if (metadata) this.#followOffsets(target, metadata);
        return !metadata;
      });
      for (const bundle of bundles) {
        if (!rest.includes(bundle)) for (const item of bundle.items) item.acknowledged();
      }
      if (rest.length > 0) logger.warn({ partitions: rest.length }, 'a send left partitions out; sending them again');
      return rest;
    } catch (error) {
      logger.warn({ reason: (error as Error).message }, 'sending to Kafka failed; sending again');
      return bundles;
    }
  }

  async #sendBatch(bundles: readonly Bundle[]): Promise<ReadonlyMap<TopicPartition, RecordMetadata>> {
    const { compression, partitionCount } = this.#options;
    const byTopic = Map.groupBy(bundles, ({ target }) => target.topic);
    const metadata = await this.#producer.sendBatch({
      acks: -1,
      timeout: ACK_TIMEOUT_MS,
      compression: COMPRESSION[compression],
      topicMessages: [...byTopic].map(([topic, ofTopic]) => ({
        topic,
        messages: ofTopic.flatMap(({ target, items }) => packMessages(target.partition, items, partitionCount)),
      })),
    });
    const acknowledged = new Map<TopicPartition, RecordMetadata>();
    for (const { target } of bundles) {
      const found = metadata.find(
        ({ topicName, partition }) => topicName === target.topic && partition === target.partition,
      );
      if (found?.errorCode === 0) acknowledged.set(target, found);
    }
    return acknowledged;
  }

  #followOffsets(target: TopicPartition, { baseOffset }: RecordMetadata): void {
    const offset = BigInt(baseOffset ?? -1);
    const messages = target.acknowledge(offset);
    if (messages === 0) return;
    this.#options.metrics.lostMessages.inc(messages);
    this.#options.logger.error(
      { topic: target.topic, partition: target.partition, messages, offset: String(offset) },
      'Kafka has lost messages that it had acknowledged: the end of the log was cut off',
    );
  }
}

function createProducer(kafka: Kafka): Producer {
  return kafka.producer({
    allowAutoTopicCreation: false,
    // kafkajs's idempotent producer can reuse a sequence number after a failed send, and the broker then drops a message
    // that it acknowledges. A repeated row costs nothing, since the writer stores each once.
    idempotent: false,
    retry: { initialRetryTime: 100, retries: 1 },
    // Every message names its partition. A partitioner that chose would choose another when kafkajs retries.
    createPartitioner:
      () =>
      ({ message }) =>
        message.partition ?? 0,
  });
}
