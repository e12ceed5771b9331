import { topicNames } from '@sluice/shared/kafka/topics';
import type { Logger } from '@sluice/shared/log';
import { sleep } from '@sluice/shared/retry';
import type { Batch, Consumer, EachBatchPayload, Kafka } from 'kafkajs';
import { type Assignment, createAssignment } from './assignment.ts';
import type { WriterConfig } from './config.ts';
import { Superseded } from './ownership.ts';
import type { Watchdog } from './watchdog.ts';

/** How long stopping waits for the batch that is being stored, in milliseconds. */
const STOP_GRACE_MS = 3_000;

const METADATA_AGE_MS_MAX = 10_000;

export interface GroupConsumerOptions {
  readonly config: WriterConfig;
  readonly kafka: Kafka;
  readonly logger: Logger;
  readonly watchdog: Watchdog;
  /** All partitions of a new assignment are paused; whoever resumes one says first where it goes on. */
  readonly onAssigned: (assignment: Assignment, consumer: Consumer) => void;
  readonly onEnded: () => void;
  /** A partition was paused because its log does not hold the next offset. */
  readonly onOutOfRange: (assignment: Assignment, consumer: Consumer, topic: string, partition: number) => void;
  /**
   * Stores what was fetched, if it belongs to the assignment: resolves with whether its offsets may be committed, once
   * nothing of it is on its way any more.
   */
  readonly store: (batch: Batch, assignment: Assignment, consumer: Consumer) => Promise<boolean>;
  /** Called with what only a restart can mend. */
  readonly fail: (error: unknown) => void;
}

/** This writer's membership of the group. */
export interface GroupConsumer {
  /** Undefined while there is none. */
  current(): Assignment | undefined;
  /** @throws kafkajs's errors; then it can be called again */
  start(): Promise<void>;
  stop(): Promise<void>;
}

export function createGroupConsumer(options: GroupConsumerOptions): GroupConsumer {
  const { config, kafka, logger, watchdog, onAssigned, onEnded, onOutOfRange, store, fail } = options;
  const heartbeatMs = config.KAFKA_SESSION_TIMEOUT_MS / 4;
  let consumer: Consumer | undefined;
  let current: Assignment | undefined;

  function end(reason: string): void {
    current?.end(reason);
    current = undefined;
    onEnded();
  }

  function create(): Consumer {
    const created = kafka.consumer({
      groupId: config.KAFKA_GROUP_ID,
      sessionTimeout: config.KAFKA_SESSION_TIMEOUT_MS,
      heartbeatInterval: heartbeatMs,
      rebalanceTimeout: 60_000,
      allowAutoTopicCreation: false,
      // A fetch waits for as many bytes or this long: that is what makes batches.
      minBytes: config.FETCH_BYTES_MIN,
      maxWaitTimeInMs: config.FETCH_WAIT_MS,
      // So soon a partition that has found a leader is fetched again, and one that was added is given out.
      metadataMaxAge: METADATA_AGE_MS_MAX,
      // Bounds the answer of each broker, both as it comes and decompressed.
      maxBytes: config.BATCH_BYTES_MAX,
      maxBytesPerPartition: Math.ceil(config.BATCH_BYTES_MAX / 8),
      retry: { initialRetryTime: 200, maxRetryTime: 5_000, retries: 10, restartOnFailure: async () => true },
    });
    // kafkajs calls listeners before it does anything else, but does not wait for what they begin.
    created.on(created.events.GROUP_JOIN, ({ payload }) => {
      watchdog.alive();
      end('the group has given out the partitions anew');
      current = createAssignment(payload);
      created.pause(
        Object.entries(current.partitions).map(([topic, partitions]) => ({ topic, partitions: [...partitions] })),
      );
      logger.info({ assignment: payload.memberAssignment }, 'joined the consumer group');
      onAssigned(current, created);
    });
    created.on(created.events.FETCH, watchdog.alive);
    created.on(created.events.HEARTBEAT, watchdog.alive);
    created.on(created.events.REBALANCING, () => {
      // Joining waits for the other members, some of whom may have to finish a batch.
      watchdog.pause();
      end('the group is rebalancing');
    });
    created.on(created.events.OFFSET_OUT_OF_RANGE, ({ payload: { topic, partition } }) => {
      if (!current) return;
      current.close(topic, partition);
      onOutOfRange(current, created, topic, partition);
    });
    created.on(created.events.CRASH, ({ payload }) => {
      end('the consumer has crashed');
      // A TypeError and its like, thrown anywhere, kafkajs takes as final, whatever restartOnFailure says.
      if (payload.restart) logger.warn({ reason: payload.error.message }, 'the consumer restarts');
      else fail(payload.error);
    });
    return created;
  }

  async function eachBatch(payload: EachBatchPayload): Promise<void> {
    const assignment = current;
    // So that kafkajs joins the group anew.
    if (!assignment || !consumer) throw new Superseded('no partitions are assigned');
    const { topic, partition } = payload.batch;
    try {
      await storeAndCommit(payload, assignment, consumer);
    } catch (error) {
      // The group is joined anew already: joining once more would only disturb the others.
      if (error === assignment.signal.reason && current) return;
      // Read again, and then committed: nothing else would commit it before the partition has its next message.
      const first = payload.batch.firstOffset();
      if (first !== null && assignment === current && assignment.isOpen(topic, partition)) {
        assignment.goBack(payload.batch);
        consumer.seek({ topic, partition, offset: first });
      }
      throw error;
    }
  }

  async function storeAndCommit(
    { batch, heartbeat, resolveOffset, commitOffsetsIfNecessary }: EachBatchPayload,
    assignment: Assignment,
    consumer: Consumer,
  ): Promise<void> {
    const { topic, partition } = batch;
    const stored = store(batch, assignment, consumer);
    try {
      await withHeartbeats(stored, heartbeat, heartbeatMs);
    } catch (error) {
      if (leadsToRejoin(error) && assignment === current) end('the group does not know this member any more');
      // Nobody may take the rows over while they are being stored.
      await stored.catch(() => undefined);
      throw error;
    }
    const isStored = await stored;
    // kafkajs resolves and commits in the assignment that it has now.
    if (!isStored || assignment.signal.aborted) return;
    resolveOffset(batch.lastOffset());
    const offset = String(BigInt(batch.lastOffset()) + 1n);
    await commitOffsetsIfNecessary({ topics: [{ topic, partitions: [{ partition, offset }] }] });
  }

  return {
    current: () => current,
    async start() {
      consumer = create();
      try {
        await consumer.connect();
        // Without fromBeginning a group that has committed nothing would begin with the newest message.
        await consumer.subscribe({ topics: Object.values(topicNames(config)), fromBeginning: true });
        await consumer.run({
          partitionsConsumedConcurrently: 2 * config.KAFKA_PARTITIONS,
          // Offsets are resolved and committed above, and nowhere else.
          autoCommit: false,
          eachBatchAutoResolve: false,
          eachBatch,
        });
      } catch (error) {
        consumer.disconnect().catch(() => undefined);
        throw error;
      }
    },
    async stop() {
      const leaving = consumer?.disconnect();
      // What is being stored is finished and committed, where that does not take long.
      await Promise.race([leaving, sleep(STOP_GRACE_MS)]);
      current?.end('the writer is stopping');
      await leaving;
      end('the writer has stopped');
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
