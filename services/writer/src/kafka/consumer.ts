import type { Consumer, Kafka } from 'kafkajs';
import type { WriterConfig } from '../config.ts';

/** How long kafkajs uses what it knows of leaders and partitions, in milliseconds. */
const METADATA_AGE_MS_MAX = 10_000;

/** How long a broker that has no messages holds a fetch, in milliseconds. */
const FETCH_WAIT_MS = 500;

/** Returns the interval between two heartbeats, in milliseconds. */
export function heartbeatIntervalMs({ KAFKA_SESSION_TIMEOUT_MS }: WriterConfig): number {
  return KAFKA_SESSION_TIMEOUT_MS / 4;
}

/** Returns the writer's kafkajs consumer, not connected yet. */
export function createKafkaConsumer(kafka: Kafka, config: WriterConfig): Consumer {
  return kafka.consumer({
    groupId: config.KAFKA_GROUP_ID,
    sessionTimeout: config.KAFKA_SESSION_TIMEOUT_MS,
    heartbeatInterval: heartbeatIntervalMs(config),
    rebalanceTimeout: 60_000,
    allowAutoTopicCreation: false,
    // The broker responds as soon as it has anything. BatchPace decides when to fetch, and so how large batches are.
    minBytes: 1,
    maxWaitTimeInMs: FETCH_WAIT_MS,
    // After this time at most, a partition with a new leader is fetched again, and a new partition is assigned.
    metadataMaxAge: METADATA_AGE_MS_MAX,
    // Limits the response of one broker, compressed and decompressed.
    maxBytes: config.BATCH_BYTES_MAX,
    maxBytesPerPartition: Math.ceil(config.BATCH_BYTES_MAX / 8),
    retry: { initialRetryTime: 200, maxRetryTime: 5_000, retries: 10, restartOnFailure: async () => true },
  });
}
