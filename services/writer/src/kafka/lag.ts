import type { Component } from '@sluice/shared/lifecycle';
import type { Admin, Kafka } from 'kafkajs';
import { offsetOf } from './inspect-partitions.ts';
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
}

/**
 * Measures the lag of all partitions, whichever writer owns them. It asks Kafka itself, so the lag is right while
 * ClickHouse is away, and while no writer has an assignment. Each measurement has a client of its own, since an older one
 * would not know of leaders that have been elected meanwhile.
 */
export class LagReader implements Component {
  readonly name = 'lag';
  readonly #options: LagReaderOptions;
  #measurement: Promise<readonly PartitionLag[] | undefined> | undefined;
  /** On the clock of `performance`, which nobody sets. */
  #measuredAt = 0;

  constructor(options: LagReaderOptions) {
    this.#options = options;
  }

  async start(): Promise<void> {}

  async stop(): Promise<void> {
    await this.#measurement;
  }

  /** Returns the lag, at most a second old; `undefined` while Kafka cannot be reached. Never throws. */
  async read(): Promise<readonly PartitionLag[] | undefined> {
    if (!this.#measurement || performance.now() - this.#measuredAt > FRESH_MS) {
      this.#measurement = this.#measureInTime().finally(() => {
        this.#measuredAt = performance.now();
      });
      this.#measuredAt = Number.POSITIVE_INFINITY;
    }
    return await this.#measurement;
  }

  async #measureInTime(): Promise<readonly PartitionLag[] | undefined> {
    const admin = this.#options.kafka.admin();
    const timeout = Promise.withResolvers<never>();
    const timer = setTimeout(() => timeout.reject(new Error('Kafka did not respond in time')), TIMEOUT_MS);
    try {
      return await Promise.race([this.#measure(admin), timeout.promise]);
    } catch {
      return undefined;
    } finally {
      clearTimeout(timer);
      await admin.disconnect().catch(() => undefined);
    }
  }

  async #measure(admin: Admin): Promise<readonly PartitionLag[]> {
    const { groupId, topics } = this.#options;
    await admin.connect();
    const committed = await admin.fetchOffsets({ groupId, topics: [...topics] });
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
        const age = oldest ? Math.max(0, Date.now() - Number(oldest.timestamp)) / 1_000 : 0;
        lags.push({ topic, partition, messages: Number(behind), seconds: age });
      }
    }
    return lags;
  }
}
