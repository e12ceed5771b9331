import type { Logger } from '@sluice/shared/base/log';
import { sleep } from '@sluice/shared/base/retry';
import { withAdmin } from '@sluice/shared/kafka/topics';
import type { ITopicMetadata, Kafka } from 'kafkajs';
import type { TopicPartition } from './topic-partition.ts';

/** How often the topics are checked while all is well, in milliseconds. */
const CHECK_INTERVAL_MS = 30_000;

/** The problem of all topics before their metadata was read. */
export const KAFKA_UNREACHABLE = 'Kafka cannot be reached';

export interface TopicWatchOptions {
  readonly kafka: Kafka;
  readonly partitions: readonly TopicPartition[];
  /** The number of partitions that each topic must have: KAFKA_PARTITIONS. */
  readonly partitionCount: number;
  readonly logger: Logger;
  /** Called after each check: leaders may have moved. */
  readonly onChecked: () => void;
}

/** Keeps the leader of every partition up to date, and knows what is wrong with the topics. */
export class TopicWatch {
  readonly #options: TopicWatchOptions;
  readonly #topics: readonly string[];
  #problems: readonly string[] = [KAFKA_UNREACHABLE];
  /** The problems of topics, by topic. One that cannot be read keeps the problem that it had. */
  readonly #problemOf = new Map<string, string>();
  #checking: Promise<void> | undefined;

  constructor(options: TopicWatchOptions) {
    this.#options = options;
    this.#topics = [...new Set(options.partitions.map(({ topic }) => topic))];
  }

  /** Why nothing can be sent, each as a short phrase; empty when the topics are as they should be. */
  get problems(): readonly string[] {
    return this.#problems;
  }

  /**
   * Reads the metadata of each topic. What is wrong with one does not keep the others from being followed.
   *
   * @throws kafkajs's errors, when everything that could be read is known
   */
  async readMetadata(): Promise<void> {
    const { kafka, onChecked } = this.#options;
    const topics: ITopicMetadata[] = [];
    const errors: unknown[] = [];
    await withAdmin(kafka, async (admin) => {
      for (const topic of this.#topics) {
        const read = admin.fetchTopicMetadata({ topics: [topic] });
        await read.then((metadata) => topics.push(...metadata.topics)).catch((error) => errors.push(error));
      }
    });
    for (const topic of topics) this.#followLeaders(topic);
    if (topics.length > 0) this.#compareCounts(topics);
    onChecked();
    if (errors.length > 0) throw errors[0];
  }

  /** {@link readMetadata} once for all callers at the same time. A failure is logged; nothing is thrown. */
  async check(): Promise<void> {
    this.#checking ??= this.readMetadata()
      .catch((error) =>
        this.#options.logger.warn({ reason: (error as Error).message }, 'the metadata of the topics cannot be read'),
      )
      .finally(() => {
        this.#checking = undefined;
      });
    await this.#checking;
  }

  /** Checks the topics regularly until the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await sleep(CHECK_INTERVAL_MS, signal);
      await this.check();
    }
  }

  /** Waits for a check that is under way. */
  async finish(): Promise<void> {
    await this.#checking;
  }

  #followLeaders({ name, partitions: found }: ITopicMetadata): void {
    const leaders = new Map(found.map(({ partitionId, leader }) => [partitionId, leader]));
    for (const target of this.#options.partitions) {
      if (target.topic === name) target.leader = leaders.get(target.partition) ?? -1;
    }
  }

  #compareCounts(topics: readonly ITopicMetadata[]): void {
    const { partitionCount, logger } = this.#options;
    for (const { name, partitions } of topics) {
      const count = partitions.length;
      if (count < partitionCount) {
        this.#problemOf.set(name, `topic ${name} has ${count} partitions, and KAFKA_PARTITIONS is ${partitionCount}`);
        continue;
      }
      this.#problemOf.delete(name);
      if (count === partitionCount) continue;
      const counts = { topic: name, partitions: count, used: partitionCount };
      logger.warn(counts, 'a topic has more partitions than KAFKA_PARTITIONS; the others are not used');
    }
    this.#problems = [...this.#problemOf.values()];
  }
}
