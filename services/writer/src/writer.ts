import type { ClickHouseClient } from '@sluice/shared/clickhouse/client';
import { MigrationMismatch, migrate } from '@sluice/shared/clickhouse/migrate';
import { ensureTopics, topicNames, withAdmin } from '@sluice/shared/kafka/topics';
import type { Part } from '@sluice/shared/lifecycle';
import type { Logger } from '@sluice/shared/log';
import { createProbe } from '@sluice/shared/probe';
import { retry, sleep } from '@sluice/shared/sleep';
import type { Consumer, ConsumerGroupJoinEvent, EachBatchPayload, Kafka } from 'kafkajs';
import type { WriterConfig } from './config.ts';
import { createDeadLetterAlarm, type DeadLetter, TooManyDeadLetters } from './dead-letters/dead-letter.ts';
import type { Epoch } from './epoch.ts';
import { createErasure } from './erasure.ts';
import { createGatherer } from './gatherer.ts';
import type { WriterMetrics } from './metrics.ts';
import { createOffsetGuard, OffsetGap } from './offset-guard.ts';
import { createOwnership, Superseded } from './ownership.ts';
import { type SourceMessage, toRowBatch } from './row-batch.ts';
import { createStagedStore } from './staged-store.ts';
import { createWatchdog } from './watchdog.ts';

type GroupJoin = ConsumerGroupJoinEvent['payload'];

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
  const groupId = config.KAFKA_GROUP_ID;
  const ownership = createOwnership({ client, groupId, writerId, isMember });
  const statementTimeoutMs = config.STATEMENT_TIMEOUT_MS;
  const store = createStagedStore({ client, ownership, groupId, statementTimeoutMs });
  const erasure = createErasure(config, erasureClient, writerId, logger);
  const gatherer = createGatherer(storeUntilDone, config.BATCH_BYTES_MAX);
  const alarm = createDeadLetterAlarm();
  const offsets = createOffsetGuard(groupId);
  const watchdog = createWatchdog(2 * config.KAFKA_SESSION_TIMEOUT_MS, () => {
    fail(new Error('nothing was heard of Kafka for two session timeouts'));
  });
  const stopping = new AbortController();
  const probe = createProbe('ClickHouse cannot be reached', 2_000, async () => {
    const { success } = await client.ping();
    if (!success) throw new Error('no ping');
  });
  let consumer: Consumer | undefined;
  let starting: Promise<void> | undefined;
  /** The present assignment's epoch; nothing is stored before it has begun. Undefined while there is no assignment. */
  let owning: Promise<Epoch> | undefined;
  /** The group's generation that this writer joined last. */
  let joined: number | undefined;

  async function isMember(memberId: string): Promise<boolean> {
    const { groups } = await withAdmin(kafka, (admin) => admin.describeGroups([groupId]));
    return groups.some(({ members }) => members.some((member) => member.memberId === memberId));
  }

  /** Becomes an owner of what was assigned, however long ClickHouse is away, unless the group moves on. */
  async function own({ generationId, memberId, memberAssignment }: GroupJoin): Promise<Epoch> {
    async function attempt(): Promise<Epoch> {
      if (generationId !== joined) throw new Superseded('the group has moved on');
      await withAdmin(kafka, (admin) => offsets.begin(admin, memberAssignment, () => generationId === joined));
      return await ownership.begin(generationId, memberId);
    }

    return await retry(attempt, {
      firstMs: 100,
      maxMs: 5_000,
      signal: stopping.signal,
      onFailure(error) {
        if (error instanceof OffsetGap) fail(error);
        if (error instanceof Superseded || error instanceof OffsetGap) throw error;
        logger.warn({ reason: (error as Error).message, generationId }, 'becoming an owner failed; trying again');
      },
    });
  }

  /** A failure is retried for ever: the rows are safe in Kafka, and only their age grows. */
  async function storeUntilDone(messages: readonly SourceMessage[], owner: Promise<Epoch>): Promise<void> {
    const batch = store.open(toRowBatch(messages), await owner, onDeadLetters);

    async function attempt(): Promise<void> {
      if (owner !== owning) throw new Superseded('the partitions have been assigned anew');
      const startedAt = performance.now();
      const { rows, userDeleted } = await batch.store();
      alarm.count(rows, 0);
      metrics.rowsDropped.inc({ reason: 'user_deleted' }, userDeleted);
      metrics.stored(messages, (performance.now() - startedAt) / 1_000);
    }

    await retry(attempt, {
      firstMs: 200,
      maxMs: 10_000,
      signal: stopping.signal,
      onFailure(error) {
        if (error instanceof TooManyDeadLetters) fail(error);
        if (error instanceof Superseded || error instanceof TooManyDeadLetters) throw error;
        metrics.storeFailures.inc();
        const reason = (error as Error).message;
        logger.warn({ reason, messages: messages.length }, 'storing a batch failed; trying again');
      },
    }).catch((error) => {
      void batch.abandon();
      throw error;
    });
  }

  function onDeadLetters(letters: readonly DeadLetter[]): void {
    metrics.deadLetters.inc(letters.length);
    const reason = letters[0]?.reason;
    logger.error({ rows: letters.length, reason }, 'rows cannot be stored and were put into dead_letters');
    alarm.count(0, letters.length);
  }

  async function eachBatch({ batch, heartbeat }: EachBatchPayload): Promise<void> {
    const { topic, partition, messages, highWatermark } = batch;
    const owner = owning;
    if (messages.length === 0) return;
    if (!owner) throw new Superseded('no partitions are assigned');
    const heartbeatMs = config.KAFKA_SESSION_TIMEOUT_MS / 4;
    await withHeartbeats(owner, heartbeat, heartbeatMs);
    if (owner !== owning) throw new Superseded('the partitions have been assigned anew');
    followOffsets(batch);
    const sources = messages.map((message) => ({ topic, partition, message }));
    const stored = gatherer.add(sources, owner);
    try {
      await withHeartbeats(stored, heartbeat, heartbeatMs);
    } catch (error) {
      if (leadsToRejoin(error) && owner === owning) owning = undefined;
      // Nobody may take the rows over while they are being stored.
      await stored.catch(() => undefined);
      throw error;
    }
    const behind = BigInt(highWatermark) - 1n - BigInt(batch.lastOffset());
    metrics.lag.set({ topic, partition }, Number(behind));
  }

  function followOffsets({ topic, partition, messages }: EachBatchPayload['batch']): void {
    try {
      offsets.follow(topic, partition, messages.at(0)?.offset ?? '', messages.at(-1)?.offset ?? '');
    } catch (error) {
      fail(error);
      throw error;
    }
  }

  async function consume(): Promise<void> {
    await migrate(config, logger);
    await ensureTopics(kafka, config);
    consumer = kafka.consumer({
      groupId,
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
    // kafkajs does not wait for listeners: whoever stores waits for `owning`.
    consumer.on(consumer.events.GROUP_JOIN, ({ payload }) => {
      watchdog.alive();
      joined = payload.generationId;
      owning = own(payload);
      // Whoever stores next is told.
      owning.catch(() => undefined);
      erasure.setOwner(payload.memberAssignment[topics.events]?.includes(0) ?? false);
      logger.info({ assignment: payload.memberAssignment }, 'joined the consumer group');
    });
    consumer.on(consumer.events.FETCH, watchdog.alive);
    consumer.on(consumer.events.HEARTBEAT, watchdog.alive);
    consumer.on(consumer.events.REBALANCING, () => {
      // Joining waits for the other members, some of whom may have to finish a batch.
      watchdog.pause();
      owning = undefined;
      erasure.setOwner(false);
    });
    consumer.on(consumer.events.CRASH, ({ payload }) => {
      owning = undefined;
      // A TypeError and its like, thrown anywhere, kafkajs takes as final, whatever restartOnFailure says.
      if (payload.restart) logger.warn({ reason: payload.error.message }, 'the consumer restarts');
      else fail(payload.error);
    });
    await consumer.connect();
    // Without fromBeginning an offset that Kafka no longer has would jump to the newest message.
    await consumer.subscribe({ topics: Object.values(topics), fromBeginning: true });
    await consumer.run({ partitionsConsumedConcurrently: 2 * config.KAFKA_PARTITIONS, eachBatch });
  }

  async function consumeOnceReachable(): Promise<void> {
    await retry(consume, {
      firstMs: 200,
      maxMs: 5_000,
      signal: stopping.signal,
      onFailure(error) {
        if (error instanceof MigrationMismatch) throw error;
        logger.warn({ reason: (error as Error).message }, 'Kafka or ClickHouse cannot be reached yet');
        consumer?.disconnect().catch(() => undefined);
      },
    }).catch((error) => {
      if (!stopping.signal.aborted) fail(error);
    });
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
      await consumer?.disconnect();
      owning = undefined;
      await Promise.all([client.close(), erasureClient.close()]);
    },
    async missing() {
      const phrases = [await probe(), owning ? undefined : 'no partitions of Kafka are assigned yet'];
      return phrases.filter((phrase) => phrase !== undefined);
    },
  };
}

/** Errors of Kafka after which kafkajs joins the group anew: the assignment is over. */
const REJOIN_ERRORS = new Set<unknown>(['REBALANCE_IN_PROGRESS', 'ILLEGAL_GENERATION', 'UNKNOWN_MEMBER_ID']);

function leadsToRejoin(error: unknown): boolean {
  return error instanceof Error && 'type' in error && REJOIN_ERRORS.has(error.type);
}

/**
 * Waits for `work`, telling the group every `everyMs` that this member is alive: kafkajs itself does so only between
 * two batches.
 *
 * @throws what `work` throws, and kafkajs's errors when the group does not take the heartbeat
 */
async function withHeartbeats(work: Promise<unknown>, heartbeat: () => Promise<void>, everyMs: number): Promise<void> {
  let done = false;
  const finished = work.finally(() => {
    done = true;
  });
  // When a heartbeat fails nobody waits for it any more.
  finished.catch(() => undefined);
  while (!done) {
    const tick = new AbortController();
    await Promise.race([finished, sleep(everyMs, tick.signal)]).finally(() => tick.abort());
    if (!done) await heartbeat();
  }
  await finished;
}
