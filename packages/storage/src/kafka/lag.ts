import { unlessAborted } from '@sluice/shared/base/unless-aborted';
import type { KafkaConfig } from '@sluice/shared/config';
import { topicNames } from '@sluice/shared/kafka/topics';
import { isInRange, type PartitionRange } from '@sluice/shared/servers/partition-range';
import type { Component } from '@sluice/shared/service/lifecycle';
import { Measurement } from '@sluice/shared/service/measurement';
import type { Admin, Kafka } from 'kafkajs';
import { ifUnreadable, offsetOf } from './inspect-partitions.ts';
import { TopicRetention } from './topic-retention.ts';

/** How long a measurement is used, in milliseconds. */
const FRESH_MS = 1_000;

/** How long a measurement of a service may take, in milliseconds: the next one may find Kafka again. */
const TIMEOUT_MS = 4_000;

/** How long that of a command may take, which makes only one. */
const COMMAND_TIMEOUT_MS = 30_000;

export interface LagReaderOptions {
  readonly kafka: Kafka;
  readonly groupId: string;
  readonly topics: readonly string[];
  /** The partitions of each topic that the group stores; `undefined`: all. */
  readonly range?: PartitionRange | undefined;
  /** Default 4,000. */
  readonly timeoutMs?: number;
}

/** An offset that the group has committed. */
export interface CommittedOffset {
  readonly topic: string;
  readonly partition: number;
  readonly offset: bigint;
}

/** How far the group had stored the log when it was measured. */
export interface StoredThrough {
  /** Until when everything that Kafka had appended is stored, in milliseconds since 1970. */
  readonly throughMs: number;
  /** The committed offsets of the partitions that have one. */
  readonly committed: readonly CommittedOffset[];
}

interface MeasuredLag {
  /** When the measurement began, in milliseconds since 1970. */
  readonly beganMs: number;
  readonly lags: readonly PartitionLag[];
  readonly committed: readonly CommittedOffset[];
  /** Whether each partition has a leader, and its oldest message that is not committed could be read. */
  readonly isWhole: boolean;
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
  readonly #measurement: Measurement<MeasuredLag>;

  constructor(options: LagReaderOptions) {
    this.#options = options;
    this.#retention = new TopicRetention(options.topics);
    this.#measurement = new Measurement({
      measure: (signal) => this.#measureWithClient(signal),
      freshMs: FRESH_MS,
      timeoutMs: options.timeoutMs ?? TIMEOUT_MS,
    });
  }

  async start(): Promise<void> {}

  async stop(): Promise<void> {
    await this.#measurement.settled();
  }

  /** Returns the lag, at most a second old; `undefined` while Kafka cannot be reached. Never throws. */
  async read(): Promise<readonly PartitionLag[] | undefined> {
    return (await this.#measurement.read())?.lags;
  }

  /** Returns how far the group has stored the log, by its commits; `undefined` while that is not known. Never throws. */
  async storedThrough(): Promise<StoredThrough | undefined> {
    const measured = await this.#measurement.read();
    if (!measured?.isWhole) return undefined;
    const { beganMs, lags, committed } = measured;
    const ageMs = Math.max(0, ...lags.map(({ seconds }) => Math.ceil(seconds * 1_000)));
    return { throughMs: beganMs - ageMs, committed };
  }

  async #measureWithClient(signal: AbortSignal): Promise<MeasuredLag> {
    const admin = this.#options.kafka.admin();
    try {
      return await unlessAborted(signal, this.#measure(admin));
    } finally {
      await admin.disconnect().catch(() => undefined);
    }
  }

  async #measure(admin: Admin): Promise<MeasuredLag> {
    const { groupId, topics, range } = this.#options;
    const beganMs = Date.now();
    await admin.connect();
    const ofTopics = await admin.fetchOffsets({ groupId, topics: [...topics] });
    const retentionMs = await this.#retention.read(admin);
    const lags: PartitionLag[] = [];
    const committed: CommittedOffset[] = [];
    let isWhole = true;
    for (const topic of topics) {
      const logs = await admin.fetchTopicOffsets(topic);
      const ofGroup = ofTopics.find((group) => group.topic === topic)?.partitions ?? [];
      isWhole &&= logs.length === ofGroup.length;
      for (const { partition, ...log } of logs) {
        if (!isInRange(range, partition)) continue;
        const [low, high] = [BigInt(log.low), BigInt(log.high)];
        const offset = offsetOf(ofGroup, partition);
        if (Number(offset) >= 0) committed.push({ topic, partition, offset: BigInt(offset) });
        const next = BigInt(Math.max(Number(offset), Number(low)));
        const behind = next < high ? high - next : 0n;
        const read = () => admin.fetchRecord({ topic, partition, offset: String(next) });
        // If Kafka returns no records of a partition, only the number of its messages is known.
        const oldest = behind > 0n ? await read().catch(ifUnreadable) : null;
        isWhole &&= behind === 0n || !!oldest;
        const ageMs = oldest ? Math.max(0, Date.now() - Number(oldest.timestamp)) : 0;
        const keptMs = retentionMs.get(topic);
        lags.push({
          ...{ topic, partition, messages: Number(behind), seconds: ageMs / 1_000 },
          headroomSeconds: oldest && keptMs !== undefined ? Math.max(0, keptMs - ageMs) / 1_000 : undefined,
        });
      }
    }
    return { beganMs, lags, committed, isWhole };
  }
}

/** Returns how many messages of partitions are not committed in all, and the age of the oldest of them, in seconds. */
export function totalLag(lags: readonly PartitionLag[]): { readonly messages: number; readonly seconds: number } {
  return {
    messages: lags.reduce((sum, { messages }) => sum + messages, 0),
    seconds: Math.max(0, ...lags.map(({ seconds }) => seconds)),
  };
}

/** Returns the lag of a group. @throws {Error} while Kafka cannot be reached, or lacks the topics */
export async function readLag(
  kafka: Kafka,
  config: Pick<KafkaConfig, 'KAFKA_TOPIC_PREFIX'>,
  groupId: string,
  range: PartitionRange | undefined,
): Promise<readonly PartitionLag[]> {
  const topics = Object.values(topicNames(config));
  const reader = new LagReader({ kafka, groupId, topics, range, timeoutMs: COMMAND_TIMEOUT_MS });
  const lags = await reader.read();
  await reader.stop();
  if (!lags) throw new Error(`the topics, or the offsets of the group ${groupId}, cannot be read at the moment`);
  return lags;
}
