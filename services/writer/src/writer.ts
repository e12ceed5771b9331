import type { ClickHouseClient } from '@sluice/shared/clickhouse/client';
import { MigrationMismatch, migrate } from '@sluice/shared/clickhouse/migrate';
import { ensureTopics, topicNames } from '@sluice/shared/kafka/topics';
import type { Part } from '@sluice/shared/lifecycle';
import type { Logger } from '@sluice/shared/log';
import { createProbe } from '@sluice/shared/probe';
import { backoff, sleep } from '@sluice/shared/sleep';
import type { Consumer, EachBatchPayload, Kafka, KafkaMessage } from 'kafkajs';
import type { WriterConfig } from './config.ts';
import { createErasure } from './erasure.ts';
import { createGatherer } from './gatherer.ts';
import type { WriterMetrics } from './metrics.ts';
import { toRowBatch } from './row-batch.ts';
import { createStagedStore } from './staged-store.ts';

export interface WriterDependencies {
  readonly kafka: Kafka;
  readonly client: ClickHouseClient;
  /** For statements that may take long: its requests time out after `ERASURE_TIMEOUT_MS`. */
  readonly erasureClient: ClickHouseClient;
  readonly logger: Logger;
  readonly metrics: WriterMetrics;
  /** Tells this writer from all others, past ones included. */
  readonly writerId: string;
  /** Called with what only a restart can mend. */
  readonly fail: (error: unknown) => void;
}

export interface Writer extends Part {
  /** What keeps the writer from storing, each as a short phrase. */
  missing(): Promise<string[]>;
}

/** Moves rows from Kafka into ClickHouse: an offset is committed only when every row up to it is stored. */
export function createWriter(config: WriterConfig, deps: WriterDependencies): Writer {
  const { kafka, client, erasureClient, logger, metrics, writerId, fail } = deps;
  const topics = topicNames(config);
  const store = createStagedStore(client, writerId, config.STATEMENT_TIMEOUT_MS);
  const erasure = createErasure(config, erasureClient, writerId, logger);
  const gatherer = createGatherer(storeUntilDone, config.BATCH_BYTES_MAX);
  const stopping = new AbortController();
  const probe = createProbe('ClickHouse cannot be reached', 2_000, async () => {
    const { success } = await client.ping();
    if (!success) throw new Error('no ping');
  });
  let consumer: Consumer | undefined;
  let starting: Promise<void> | undefined;
  let joined = false;

  /** A failure is retried for ever: the rows are safe in Kafka, and only their age grows. */
  async function storeUntilDone(messages: readonly KafkaMessage[]): Promise<void> {
    const batch = toRowBatch(messages);
    let unclear = false;
    for (const delayMs of backoff(200, 10_000)) {
      stopping.signal.throwIfAborted();
      try {
        if (unclear) await store.killAll();
        unclear = false;
        const startedAt = performance.now();
        await store.store(batch);
        metrics.stored(messages, (performance.now() - startedAt) / 1_000);
        return;
      } catch (error) {
        unclear = true;
        metrics.storeFailures.inc();
        logger.warn(
          { reason: (error as Error).message, messages: messages.length },
          'storing a batch failed; trying again',
        );
        await sleep(delayMs, stopping.signal);
      }
    }
  }

  async function eachBatch({ batch, heartbeat }: EachBatchPayload): Promise<void> {
    if (batch.messages.length === 0) return;
    await withHeartbeats(gatherer.add(batch.messages), heartbeat, config.KAFKA_SESSION_TIMEOUT_MS / 4);
    const behind = BigInt(batch.highWatermark) - 1n - BigInt(batch.lastOffset());
    metrics.lag.set({ topic: batch.topic, partition: batch.partition }, Number(behind));
  }

  async function consume(): Promise<void> {
    await migrate(config, logger);
    await store.killAll();
    await ensureTopics(kafka, config);
    consumer = kafka.consumer({
      groupId: config.KAFKA_GROUP_ID,
      sessionTimeout: config.KAFKA_SESSION_TIMEOUT_MS,
      heartbeatInterval: config.KAFKA_SESSION_TIMEOUT_MS / 4,
      rebalanceTimeout: 60_000,
      allowAutoTopicCreation: false,
      // A fetch waits for as many bytes or this long: that is what makes batches.
      minBytes: config.FETCH_BYTES_MIN,
      maxWaitTimeInMs: config.FETCH_WAIT_MS,
      maxBytes: config.BATCH_BYTES_MAX,
      maxBytesPerPartition: Math.ceil(config.BATCH_BYTES_MAX / 4),
      retry: { initialRetryTime: 200, maxRetryTime: 5_000, retries: 10, restartOnFailure: async () => true },
    });
    consumer.on(consumer.events.GROUP_JOIN, ({ payload }) => {
      joined = true;
      erasure.setOwner(payload.memberAssignment[topics.events]?.includes(0) ?? false);
      logger.info({ assignment: payload.memberAssignment }, 'joined the consumer group');
    });
    consumer.on(consumer.events.REBALANCING, () => {
      joined = false;
      erasure.setOwner(false);
    });
    consumer.on(consumer.events.CRASH, ({ payload }) => {
      joined = false;
      if (payload.restart) logger.warn({ reason: payload.error.message }, 'the consumer restarts');
      else fail(payload.error);
    });
    await consumer.connect();
    // Without fromBeginning an offset that Kafka no longer has would jump to the newest message.
    await consumer.subscribe({ topics: Object.values(topics), fromBeginning: true });
    await consumer.run({ partitionsConsumedConcurrently: 2 * config.KAFKA_PARTITIONS, eachBatch });
  }

  async function consumeOnceReachable(): Promise<void> {
    for (const delayMs of backoff(200, 5_000)) {
      if (stopping.signal.aborted) return;
      try {
        await consume();
        return;
      } catch (error) {
        if (error instanceof MigrationMismatch) throw error;
        logger.warn({ reason: (error as Error).message }, 'Kafka or ClickHouse cannot be reached yet');
        await consumer?.disconnect().catch(() => undefined);
        await sleep(delayMs, stopping.signal);
      }
    }
  }

  return {
    name: 'writer',
    async start() {
      starting ??= consumeOnceReachable().catch(fail);
      erasure.start();
    },
    async stop() {
      stopping.abort(new Error('the writer is stopping'));
      await starting;
      await erasure.stop();
      await consumer?.disconnect();
      joined = false;
      await Promise.all([client.close(), erasureClient.close()]);
    },
    async missing() {
      const phrases = [await probe(), joined ? undefined : 'no partitions of Kafka are assigned yet'];
      return phrases.filter((phrase) => phrase !== undefined);
    },
  };
}

/**
 * Waits for `work`, telling the group every `everyMs` that this member is alive. When the group says that it is not,
 * the work is waited for all the same: nobody may take it over while it runs.
 */
async function withHeartbeats(work: Promise<void>, heartbeat: () => Promise<void>, everyMs: number): Promise<void> {
  let done = false;
  const finished = work.finally(() => {
    done = true;
  });
  while (!done) {
    const tick = new AbortController();
    await Promise.race([finished, sleep(everyMs, tick.signal)]).finally(() => tick.abort());
    if (done) break;
    try {
      await heartbeat();
    } catch (error) {
      await finished;
      throw error;
    }
  }
  await finished;
}
