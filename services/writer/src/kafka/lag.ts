import type { Component } from '@sluice/shared/lifecycle';
import { Measurement } from '@sluice/shared/measurement';
import type { Admin, Kafka } from 'kafkajs';
import { offsetOf } from './inspect-partitions.ts';
import { TopicRetention } from './topic-retention.ts';
import { ifUnreadable } from './unreadable-partition.ts';

/** How long a measurement is used, in milliseconds. */
const FRESH_MS = 1_000;

/** How long a measurement may take, in milliseconds. */
const TIMEOUT_MS = 4_000;

export interface LagReaderOptions {
  readonly kafka: Kafka;
  readonly groupId: string;
  readonly topics: readonly string[];
}

/** What Kafka holds of a partition and the writers have not committed. */
export interface PartitionLag {
  readonly topic: string;
  readonly partition: number;
  readonly messages: number;
  /** The age of the oldest of these messages; 0 when there is none. */
  readonly seconds: number;
  /**
   * The time until Kafka may delete the oldest of these messages, because it is then as old as `retention.ms`; 0 when it
   * is. `undefined` when there is none, and where age deletes nothing.
   */
  readonly headroomSeconds: number | undefined;
}

/**
 * Measures the lag of all partitions, whichever writer owns them. It asks Kafka itself, so the lag is right while
 * ClickHouse is away, and while no writer has an assignment. Each measurement has a client of its own, since an older one
 * would not know of leaders that have been elected meanwhile.
 */
export class LagReader implements Component {
  readonly name = 'lag';
  readonly #options: LagReaderOptions;
  readonly #retention: TopicRetention;
  readonly #measurement = new Measurement({
    measure: (signal) => this.#measureWithClient(signal),
    freshMs: FRESH_MS,
    timeoutMs: TIMEOUT_MS,
  });

  constructor(options: LagReaderOptions) {
    this.#options = options;
    this.#retention = new TopicRetention(options.topics);
  }

  async start(): Promise<void> {}

  async stop(): Promise<void> {
    await this.#measurement.settled();
  }

  /** Returns the lag, at most a second old; `undefined` while Kafka cannot be reached. Never throws. */
  async read(): Promise<readonly PartitionLag[] | undefined> {
    return await this.#measurement.read();
  }

  async #measureWithClient(signal: AbortSignal): Promise<readonly PartitionLag[]> {
    const admin = this.#options.kafka.admin();
    const timeout = Promise.withResolvers<never>();
    signal.addEventListener('abort', () => timeout.reject(signal.reason));
    try {
      return await Promise.race([this.#measure(admin), timeout.promise]);
    } finally {
      await admin.disconnect().catch(() => undefined);
    }
  }

  async #measure(admin: Admin): Promise<readonly PartitionLag[]> {
    const { groupId, topics } = this.#options;
    await admin.connect();
    const committed = await admin.fetchOffsets({ groupId, topics: [...topics] });
    const retentionMs = await this.#retention.read(admin);
    const lags: PartitionLag[] = [];
    for (const topic of topics) {
      const logs = await admin.fetchTopicOffsets(topic);
      const ofGroup = committed.find((group) => group.topic === topic)?.partitions ?? [];
      for (const { partition, ...log } of logs) {
        const [low, high] = [BigInt(log.low), BigInt(log.high)];
        const offset = offsetOf(ofGroup, partition);
        const next = BigInt(Math.max(Number(offset), Number(low)));
        const behind = next < high ? high - next : 0n;
        const read = () => admin.fetchRecord({ topic, partition, offset: String(next) });
        // Of a partition that Kafka does not return records of, only the number of messages is known.
        const oldest = behind > 0n ? await read().catch(ifUnreadable) : null;
        const ageMs = oldest ? Math.max(0, Date.now() - Number(oldest.timestamp)) : 0;
        const keptMs = retentionMs.get(topic);
        lags.push({
          ...{ topic, partition, messages: Number(behind), seconds: ageMs / 1_000 },
          headroomSeconds: oldest && keptMs !== undefined ? Math.max(0, keptMs - ageMs) / 1_000 : undefined,
        });
      }
    }
    return lags;
  }
}
