import type { Span } from '@opentelemetry/api';
import { connectionHint } from '@sluice/shared/base/connection-hints';
import type { Logger } from '@sluice/shared/base/log';
import { atMost, retry } from '@sluice/shared/base/retry';
import { ensureTopics } from '@sluice/shared/kafka/topics';
import type { Component } from '@sluice/shared/service/lifecycle';
import type { PartitionRows } from '@sluice/submissions/rows/partition-rows';
import type { Kafka } from 'kafkajs';
import type { IngestConfig } from '../config.ts';
import type { IngestMetrics } from '../metrics.ts';
import { BatchSender } from './batch-sender.ts';
import { BrokerLanes } from './broker-lanes.ts';
import type { QueuedRows } from './partition-queue.ts';
import { createTopicPartitions, type TopicPartition, type TopicPartitions } from './topic-partition.ts';
import { TopicWatch } from './topic-watch.ts';

/** Rows were not acknowledged in time. They may be stored or not; sending them again is right in both cases. */
export class PublishTimeout extends Error {
  override readonly name = 'PublishTimeout';
}

/** Kafka takes no message as large as one of the rows. Others may be stored; sending them again would change nothing. */
export class RowsRefused extends Error {
  override readonly name = 'RowsRefused';
}

/** How long a stop waits for Kafka, in milliseconds. */
const STOP_MS_MAX = 4_000;

export interface RowPublisherOptions {
  readonly kafka: Kafka;
  readonly config: IngestConfig;
  readonly metrics: Pick<IngestMetrics, 'lostMessages' | 'leaderlessPartitions' | 'failingPartitions'>;
  readonly logger: Logger;
}

/**
 * Gathers the rows of many requests while a send is under way, and sends them as few messages. What Kafka does not acknowledge is
 * sent again until its request times out.
 */
export class RowPublisher implements Component {
  readonly name = 'Kafka producer';
  readonly #options: RowPublisherOptions;
  readonly #partitions: TopicPartitions;
  readonly #watch: TopicWatch;
  readonly #sender: BatchSender;
  readonly #lanes: BrokerLanes;
  readonly #stopping = new AbortController();
  #running: Promise<void> | undefined;

  constructor(options: RowPublisherOptions) {
    const { kafka, config, metrics, logger } = options;
    this.#options = options;
    this.#partitions = createTopicPartitions(config);
    const partitions = [...this.#partitions.events, ...this.#partitions.entities];
    metrics.leaderlessPartitions.sampleFrom(() => partitions.filter(({ leader }) => leader < 0).length);
    metrics.failingPartitions.sampleFrom(() => partitions.filter(({ isFailing }) => isFailing).length);
    this.#watch = new TopicWatch({
      kafka,
      partitions,
      partitionCount: config.KAFKA_PARTITIONS,
      logger,
      onChecked: () => this.#lanes.schedule(),
    });
    this.#sender = new BatchSender({
      kafka,
      compression: config.KAFKA_COMPRESSION,
      partitionCount: config.KAFKA_PARTITIONS,
      metrics,
      logger,
    });
    this.#lanes = new BrokerLanes({
      partitions,
      watch: this.#watch,
      sender: this.#sender,
      lingerMs: config.PRODUCE_LINGER_MS,
      logger,
    });
  }

  /** Starts to connect in the background: the service is alive, though not ready, while Kafka is away. */
  async start(): Promise<void> {
    this.#running ??= this.#run().catch((error) => {
      if (!this.#stopping.signal.aborted) throw error;
    });
  }

  /**
   * Resolves once Kafka has acknowledged every row on all in-sync replicas.
   *
   * @param request its workspace, and its span
   * @param timeoutMs by default `PRODUCE_TIMEOUT_MS`
   * @throws {PublishTimeout} after that time
   * @throws {RowsRefused} when the topic takes no message as large as one of the rows
   */
  publish(
    request: { readonly workspace: string; readonly span: Span | undefined },
    rows: readonly PartitionRows[],
    timeoutMs: number = this.#options.config.PRODUCE_TIMEOUT_MS,
  ): Promise<void> {
    const { workspace, span } = request;
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    let remaining = rows.length;
    const refused = () => fail(new RowsRefused('Kafka takes no message as large as one of the rows'));
    const queued = rows.map(
      (item): QueuedRows => ({ ...item, workspace, span, expired: false, acknowledged, refused }),
    );
    const timer = setTimeout(() => fail(new PublishTimeout('Kafka has not acknowledged the rows in time')), timeoutMs);

    /** Nothing of the request is sent any more. */
    const fail = (error: Error): void => {
      clearTimeout(timer);
      for (const item of queued) {
        item.expired = true;
        this.#targetOf(item).queue.remove(item);
      }
      reject(error);
    };

    function acknowledged(): void {
      remaining -= 1;
      if (remaining > 0) return;
      clearTimeout(timer);
      resolve();
    }

    const targets = queued.map((item) => {
      const target = this.#targetOf(item);
      target.queue.add(item);
      return target;
    });
    this.#lanes.schedule(targets);
    return promise;
  }

  /** Returns what keeps rows from being sent, each as a short phrase. */
  missing(): readonly string[] {
    return this.#watch.problems;
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    // No request waits any more: what is still being sent has got its response.
    await atMost(STOP_MS_MAX, this.#end());
  }

  async #end(): Promise<void> {
    await this.#running;
    await this.#watch.finish();
    await this.#lanes.finish();
    await this.#sender.disconnect();
  }

  async #run(): Promise<void> {
    const { logger } = this.#options;
    const { signal } = this.#stopping;
    await retry(() => this.#connect(), {
      firstMs: 200,
      maxMs: 5_000,
      signal,
      onFailure: (error) =>
        logger.warn({ reason: (error as Error).message, hint: connectionHint(error) }, 'Kafka cannot be reached yet'),
    });
    await this.#watch.run(signal);
  }

  async #connect(): Promise<void> {
    const { kafka, config, logger } = this.#options;
    await ensureTopics(kafka, config);
    await this.#sender.connect();
    await this.#watch.readMetadata();
    logger.info({ partitions: config.KAFKA_PARTITIONS }, 'connected to Kafka');
  }

  #targetOf({ topic, partition }: PartitionRows): TopicPartition {
    const target = this.#partitions[topic][partition];
    if (!target) throw new Error(`there is no partition ${partition} of ${topic}`);
    return target;
  }
}
