import type { ClickHouseClient } from '@sluice/shared/clickhouse/client';
import { MigrationMismatch, migrate } from '@sluice/shared/clickhouse/migrate';
import { ensureTopics, topicNames, withAdmin } from '@sluice/shared/kafka/topics';
import type { Component } from '@sluice/shared/lifecycle';
import type { Logger } from '@sluice/shared/log';
import { createProbe } from '@sluice/shared/probe';
import { retry } from '@sluice/shared/retry';
import type { Batch, Consumer, Kafka } from 'kafkajs';
import type { Assignment } from './assignment.ts';
import { createBatchLoop } from './batch-loop.ts';
import type { WriterConfig } from './config.ts';
import { createDeadLetterAlarm } from './dead-letters/dead-letter.ts';
import { createErasure } from './erasure.ts';
import { createGroupConsumer } from './group-consumer.ts';
import { createHalts } from './halts.ts';
import { isMemberOf } from './membership.ts';
import type { WriterMetrics } from './metrics.ts';
import { gone, isSameLog, replaced } from './offset-guard.ts';
import { createOwnership } from './ownership.ts';
import { createPartitionKeeper } from './partition-keeper.ts';
import { nameOf } from './place.ts';
import { createPositions } from './positions.ts';
import { createStagedStore } from './staged-store.ts';
import { createWatchdog } from './watchdog.ts';

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

export interface Writer extends Component {
  /** What keeps the writer from storing, each as a short phrase. */
  missing(): Promise<string[]>;
}

/** Moves rows from Kafka into ClickHouse: an offset is committed only when every row up to it is stored. */
export function createWriter(config: WriterConfig, deps: WriterDependencies): Writer {
  const { kafka, client, erasureClient, logger, metrics, writerId, fail } = deps;
  const groupId = config.KAFKA_GROUP_ID;
  const statementTimeoutMs = config.STATEMENT_TIMEOUT_MS;
  const ownership = createOwnership({
    client,
    groupId,
    writerId,
    // A member keeps its name when it joins again.
    isMember: async (memberId, generation) =>
      (await isMemberOf(kafka, groupId, memberId)) && group.current()?.generation === generation,
  });
  const store = createStagedStore({ client, ownership, groupId, statementTimeoutMs });
  const positions = createPositions({ client, ownership, groupId, statementTimeoutMs });
  const halts = createHalts(client, groupId);
  const keeper = createPartitionKeeper({ kafka, groupId, ownership, positions, halts, logger, metrics });
  const alarm = createDeadLetterAlarm({
    onChange(raised) {
      metrics.deadLetterAlarm.set(raised ? 1 : 0);
      if (raised) logger.error(raised);
    },
  });
  const batches = createBatchLoop({ store, positions, bytesMax: config.BATCH_BYTES_MAX, alarm, metrics, logger });
  const erasure = createErasure(config, erasureClient, writerId, logger);
  const watchdog = createWatchdog(2 * config.KAFKA_SESSION_TIMEOUT_MS, () => {
    fail(new Error('nothing was heard of Kafka for two session timeouts'));
  });
  const group = createGroupConsumer({
    config,
    kafka,
    logger,
    watchdog,
    onAssigned(assignment, consumer) {
      erasure.setOwner(assignment.partitions[topicNames(config).events]?.includes(0) ?? false);
      keeper.takeOver(assignment, consumer).catch(fail);
    },
    onEnded: () => erasure.setOwner(false),
    onOutOfRange(assignment, consumer, topic, partition) {
      keeper.reopen(assignment, consumer, topic, partition).catch(fail);
    },
    store: storeBatch,
    fail,
  });
  const stopping = new AbortController();
  const probe = createProbe('ClickHouse cannot be reached', 2_000, async () => {
    const { success } = await client.ping();
    if (!success) throw new Error('no ping');
  });
  let starting: Promise<void> | undefined;

  /** Only what comes next in the log that was stored so far, in the generation that it was fetched in. */
  async function storeBatch(batch: Batch, assignment: Assignment, consumer: Consumer): Promise<boolean> {
    const { topic, partition, messages } = batch;
    let delivery = assignment.judge(batch);
    if (delivery.kind === 'new leader') {
      const { place } = delivery;
      const isSame = await withAdmin(kafka, (admin) => isSameLog(admin, topic, partition, place));
      // Waiting for Kafka, the partition may have gone to others.
      delivery = assignment.judge(batch);
      if (!isSame && delivery.kind === 'new leader') {
        keeper.halt(assignment, consumer, topic, partition, replaced(nameOf(batch), place.nextOffset));
        return false;
      }
    }
    if (assignment.signal.aborted || delivery.kind === 'late') return false;
    if (delivery.kind === 'elsewhere') {
      consumer.seek({ topic, partition, offset: String(delivery.place.nextOffset) });
      return false;
    }
    if (delivery.kind === 'gap') {
      const { place, first } = delivery;
      keeper.halt(assignment, consumer, topic, partition, gone(nameOf(batch), place.nextOffset, first));
      return false;
    }
    assignment.advance(batch);
    const sources = messages.map((message) => ({ topic, partition, message }));
    await batches.add(sources, assignment);
    return true;
  }

  async function consume(): Promise<void> {
    await migrate(config, logger);
    await ensureTopics(kafka, config);
    await group.start();
  }

  async function consumeOnceReachable(): Promise<void> {
    await retry(consume, {
      firstMs: 200,
      maxMs: 5_000,
      signal: stopping.signal,
      onFailure(error) {
        if (error instanceof MigrationMismatch) throw error;
        logger.warn({ reason: (error as Error).message }, 'Kafka or ClickHouse cannot be reached yet');
      },
    }).catch((error) => {
      if (!stopping.signal.aborted) fail(error);
    });
  }

  function whatOwnershipLacks(): string | undefined {
    const assignment = group.current();
    if (!assignment) return 'no partitions of Kafka are assigned yet';
    return assignment.epoch ? undefined : 'the assigned partitions are not taken over yet';
  }

  return {
    name: 'writer',
    async start() {
      starting ??= consumeOnceReachable();
      erasure.start();
    },
    async stop() {
      watchdog.stop();
      stopping.abort(new Error('the writer is stopping'));
      await starting;
      await erasure.stop();
      await group.stop();
      await Promise.all([client.close(), erasureClient.close()]);
    },
    async missing() {
      const phrases = [await probe(), whatOwnershipLacks(), ...keeper.missing(), alarm.raised()];
      return phrases.filter((phrase) => phrase !== undefined);
    },
  };
}
