import type { Logger } from '@sluice/shared/base/log';
import { sleep } from '@sluice/shared/base/retry';
import { topicNames, withAdmin } from '@sluice/shared/kafka/topics';
import { Assignment } from '@sluice/storage/protocol/assignment';
import { Fenced } from '@sluice/storage/protocol/epoch';
import type { TopicPartition } from '@sluice/storage/protocol/position';
import type { Batch, Consumer, EachBatchPayload, Kafka } from 'kafkajs';
import type { WriterConfig } from '../config.ts';
import { OffsetCommits, storeAndCommit } from './store-and-commit.ts';
import type { Watchdog } from './watchdog.ts';

/** How long a stop waits for the batch that is being stored, in milliseconds. */
const STOP_GRACE_MS = 3_000;

/** How long a stop waits for Kafka to let this member go after that, in milliseconds. */
const LEAVE_MS_MAX = 5_000;

export interface GroupConsumerOptions {
  readonly config: WriterConfig;
  readonly kafka: Kafka;
  readonly logger: Logger;
  readonly watchdog: Watchdog;
  /** Called with a new assignment, all of whose partitions are paused. Seek to its position before you resume one. */
  readonly onAssigned: (assignment: Assignment, consumer: Consumer) => void;
  /** Called when the assignment is over. */
  readonly onEnded: () => void;
  /** Called when a partition was paused because its log does not hold the next offset. */
  readonly onOutOfRange: (assignment: Assignment, consumer: Consumer, partition: TopicPartition) => void;
  /**
   * Stores a fetched batch if it fits the assignment. Resolves with whether its offsets may be committed, once none of
   * its statements is running any more.
   */
  readonly store: (batch: Batch, assignment: Assignment, consumer: Consumer) => Promise<boolean>;
  /** Resolves when the next batch may be fetched. It never throws. */
  readonly rest: (signal: AbortSignal) => Promise<void>;
  /** Returns the metadata of an offset that is committed. It is known once the partitions are taken over. */
  readonly commitMetadata: () => string;
  /** Called with an error that only a restart can resolve. */
  readonly fail: (error: unknown) => void;
}

/** This writer's membership of the consumer group: joins, receives assignments and batches, commits, leaves. */
export class GroupConsumer {
  readonly #options: GroupConsumerOptions;
  readonly #stopping = new AbortController();
  #consumer: Consumer | undefined;
  #assignment: Assignment | undefined;
  /** Commits what is stored in the name of the assignment. */
  #commits: OffsetCommits | undefined;
  /** Aborts with the assignment, and when this writer begins to stop. */
  #resting = this.#stopping.signal;

  constructor(options: GroupConsumerOptions) {
    this.#options = options;
  }

  /** Undefined while this writer has no assignment. */
  get assignment(): Assignment | undefined {
    return this.#assignment;
  }

  /** Joins the group and begins to fetch. @throws kafkajs's errors; the call may be repeated */
  async start(): Promise<void> {
    const { config, kafka } = this.#options;
    const consumer = createKafkaConsumer(kafka, config);
    this.#consumer = consumer;
    this.#listen(consumer);
    try {
      await consumer.connect();
      // Without fromBeginning, a group that has committed nothing yet would begin at the newest message.
      await consumer.subscribe({ topics: Object.values(topicNames(config)), fromBeginning: true });
      await consumer.run({
        partitionsConsumedConcurrently: 2 * config.KAFKA_PARTITIONS,
        // storeAndCommit resolves and commits offsets; kafkajs must not commit by itself.
        autoCommit: false,
        eachBatchAutoResolve: false,
        eachBatch: (payload) => this.#eachBatch(payload),
      });
    } catch (error) {
      consumer.disconnect().catch(() => undefined);
      throw error;
    }
  }

  /**
   * Leaves the group, after the batch that is being stored, if that takes less than {@link STOP_GRACE_MS}. A Kafka that does
   * not respond keeps no writer from stopping: it removes the member after the session timeout.
   */
  async stop(): Promise<void> {
    this.#stopping.abort();
    const leaving = this.#consumer?.disconnect().then(() => 'left' as const);
    await Promise.race([leaving, sleep(STOP_GRACE_MS)]);
    this.#assignment?.end('the writer is stopping');
    if (leaving && (await Promise.race([leaving, sleep(LEAVE_MS_MAX)])) !== 'left') {
      this.#options.logger.warn('Kafka does not respond: the writer stops without leaving its group');
    }
    this.#endAssignment('the writer has stopped');
  }

  /** kafkajs calls a listener before it does anything else, but does not wait for promises. */
  #listen(consumer: Consumer): void {
    const { logger, watchdog, onAssigned, onOutOfRange, commitMetadata, fail } = this.#options;
    const { events } = consumer;
    consumer.on(events.GROUP_JOIN, ({ payload }) => {
      watchdog.alive();
      this.#endAssignment('the group has assigned the partitions anew');
      const assignment = new Assignment(payload);
      this.#assignment = assignment;
      this.#commits = new OffsetCommits(assignment, commitMetadata);
      this.#resting = AbortSignal.any([assignment.signal, this.#stopping.signal]);
      const assigned = Object.entries(assignment.partitions);
      consumer.pause(assigned.map(([topic, partitions]) => ({ topic, partitions: [...partitions] })));
      logger.info({ assignment: payload.memberAssignment }, 'joined the consumer group');
      onAssigned(assignment, consumer);
    });
    consumer.on(events.FETCH, () => watchdog.alive());
    consumer.on(events.HEARTBEAT, () => watchdog.alive());
    consumer.on(events.REBALANCING, () => {
      // A join waits for the other members, and some of them may have to finish a batch.
      watchdog.pause();
      this.#endAssignment('the group is rebalancing');
    });
    consumer.on(events.OFFSET_OUT_OF_RANGE, ({ payload: { topic, partition } }) => {
      if (!this.#assignment) return;
      this.#assignment.close({ topic, partition });
      onOutOfRange(this.#assignment, consumer, { topic, partition });
    });
    consumer.on(events.CRASH, ({ payload }) => {
      this.#endAssignment('the consumer has crashed');
      // kafkajs never restarts after a TypeError or the like, whatever restartOnFailure returns.
      if (!payload.restart) {
        fail(payload.error);
        return;
      }
      logger.warn({ reason: payload.error.message }, 'the Kafka consumer failed and restarts');
    });
  }

  async #eachBatch(payload: EachBatchPayload): Promise<void> {
    const [assignment, commits, consumer] = [this.#assignment, this.#commits, this.#consumer];
    // Fenced makes kafkajs join the group again.
    if (!assignment || !commits || !consumer) throw new Fenced('no partitions are assigned');
    const { batch } = payload;
    try {
      await storeAndCommit({
        payload,
        assignment,
        commits,
        store: () => this.#options.store(batch, assignment, consumer),
        heartbeatMs: heartbeatIntervalMs(this.#options.config),
        onExpelled: () => {
          if (assignment === this.#assignment) this.#endAssignment('the group does not know this member any more');
        },
      });
    } catch (error) {
      if (assignment === this.#assignment) fetchAgain(batch, assignment, consumer);
      throw error;
    }
    // kafkajs fetches again only when this returns.
    await this.#options.rest(this.#resting);
  }

  #endAssignment(reason: string): void {
    this.#assignment?.end(reason);
    this.#assignment = undefined;
    this.#commits = undefined;
    this.#options.onEnded();
  }
}

/**
 * Has a batch fetched again whose storing or committing failed. Otherwise a batch that is stored but not committed would
 * stay so until its partition gets another message.
 */
function fetchAgain(batch: Batch, assignment: Assignment, consumer: Consumer): void {
  const { topic, partition } = batch;
  const offset = batch.firstOffset();
  if (offset === null || !assignment.isOpen({ topic, partition })) return;
  assignment.goBack(batch);
  consumer.seek({ topic, partition, offset });
}

/** How long kafkajs uses what it knows of leaders and partitions, in milliseconds. */
const METADATA_AGE_MS_MAX = 10_000;

/** How long a broker that has no messages holds a fetch, in milliseconds. */
const FETCH_WAIT_MS = 500;

/** Returns the interval between two heartbeats, in milliseconds. */
function heartbeatIntervalMs({ KAFKA_SESSION_TIMEOUT_MS }: WriterConfig): number {
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

/** Returns whether Kafka counts the member to the group now. @throws kafkajs's errors */
export async function isMemberOf(kafka: Kafka, groupId: string, memberId: string): Promise<boolean> {
  const { groups } = await withAdmin(kafka, (admin) => admin.describeGroups([groupId]));
  return groups.some(({ members }) => members.some((member) => member.memberId === memberId));
}
