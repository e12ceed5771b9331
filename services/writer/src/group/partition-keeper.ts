import type { Logger } from '@sluice/shared/base/log';
import { retry, sleep } from '@sluice/shared/base/retry';
import { withAdmin } from '@sluice/shared/kafka/topics';
import { isInRange, type PartitionRange } from '@sluice/shared/servers/partition-range';
import { GroupMismatch } from '@sluice/storage/clickhouse/claim-database';
import type { Halts } from '@sluice/storage/clickhouse/halts';
import type { KnownPartitions } from '@sluice/storage/clickhouse/known-partitions';
import { DatabaseFilling, DatabaseMismatch, type OwnDatabase } from '@sluice/storage/clickhouse/own-database';
import type { Ownership } from '@sluice/storage/clickhouse/ownership';
import type { NewPosition, Positions } from '@sluice/storage/clickhouse/positions';
import type { Replicas } from '@sluice/storage/clickhouse/replicas';
import { inspectPartitions } from '@sluice/storage/kafka/inspect-partitions';
import type { Assignment } from '@sluice/storage/protocol/assignment';
import { Fenced } from '@sluice/storage/protocol/epoch';
import type { LogGap } from '@sluice/storage/protocol/log-gap';
import { nameOf, type Position, type TopicPartition } from '@sluice/storage/protocol/position';
import type { Consumer, Kafka, TopicPartitionOffsetAndMetadata } from 'kafkajs';
import type { WriterMetrics } from '../metrics.ts';
import type { BrokerLacks } from './broker-lacks.ts';
import type { ForeignCommits } from './foreign-commits.ts';
import { HaltedPartitions } from './halted-partitions.ts';

/** How often the halts are read, in milliseconds: the delay with which a running writer follows an operator's command. */
const POLL_MS = 1_000;

/** How often what was committed is committed again, and compared with what others commit, in milliseconds. */
const COMMIT_AGAIN_MS = 60_000;

/** What trying again within the assignment does not resolve. */
const ENDS_WRITER = [GroupMismatch, DatabaseMismatch, DatabaseFilling];

export interface PartitionKeeperOptions {
  readonly kafka: Kafka;
  readonly groupId: string;
  readonly ownership: Ownership;
  readonly positions: Positions;
  readonly halts: Halts;
  readonly database: Pick<OwnDatabase, 'id' | 'claim' | 'others' | 'requireFilled'>;
  /** Undefined where a server has its rows alone. */
  readonly replicas: Pick<Replicas, 'takeOver' | 'readPositions'> | undefined;
  readonly foreignCommits: Pick<ForeignCommits, 'look'>;
  readonly lacks: Pick<BrokerLacks, 'add'>;
  /** The partitions of each topic that this writer's server stores; `undefined`: all. The others stay paused. */
  readonly range: PartitionRange | undefined;
  /** Reads what a server of ClickHouse knows of the partitions. @throws {Fenced} when another one answers */
  readonly readKnown: (server: string | undefined) => Promise<KnownPartitions>;
  readonly logger: Logger;
  readonly metrics: WriterMetrics;
}

/**
 * Decides which of the assigned partitions are stored, and from where.
 *
 * A new assignment begins with all partitions paused. The keeper resumes those whose log continues what was stored. It
 * halts the others: they stay paused until an operator resumes them with `npm run writer -- resume`. Once a second it
 * reads the halts, and so follows what operators halt and resume.
 */
export class PartitionKeeper {
  readonly #options: PartitionKeeperOptions;
  readonly #halted: HaltedPartitions;
  /** Why the halts and the positions could not be read when they were read last. */
  #unreadable: string | undefined;

  constructor(options: PartitionKeeperOptions) {
    this.#options = options;
    this.#halted = new HaltedPartitions(options.halts, options.metrics);
  }

  /**
   * Takes over a new assignment: becomes an owner, inspects the logs, and opens the partitions that are sound and not
   * halted. Retries until it succeeds, then follows operators, until the assignment is over.
   *
   * @throws {GroupMismatch | DatabaseMismatch} when the database is not that of this writer, or not its alone
   * @throws {DatabaseFilling} while rows are copied into it, for which the group must have no members
   */
  async takeOver(assignment: Assignment, consumer: Consumer): Promise<void> {
    this.#halted.reset();
    this.#unreadable = undefined;
    await this.#retry(assignment, 'taking the partitions over failed', () => this.#takeOnce(assignment, consumer));
    await this.#followOperators(assignment, consumer);
  }

  /** Inspects a paused partition again, and opens or halts it. Retries until the assignment is over. */
  async reopen(assignment: Assignment, consumer: Consumer, { topic, partition }: TopicPartition): Promise<void> {
    await this.#retry(assignment, `inspecting ${nameOf({ topic, partition })} failed`, () =>
      this.#open(assignment, consumer, { [topic]: [partition] }),
    );
  }

  /** Stops storing one partition until an operator resumes it. The other partitions go on. */
  halt(assignment: Assignment, consumer: Consumer, { topic, partition }: TopicPartition, gap: LogGap): void {
    stopStoring(assignment, consumer, { topic, partition });
    if (assignment.epoch) this.#halted.addNew({ topic, partition, ...gap }, assignment.epoch);
    this.#options.logger.error(
      { topic, partition, reason: gap.reason },
      `${gap.detail}. The partition is halted; show it and resume it with: npm run writer -- status`,
    );
  }

  /** Returns what keeps partitions of this writer from being stored, as short phrases. */
  missing(): string[] {
    const unreadable = this.#unreadable === undefined ? [] : [this.#unreadable];
    return [...this.#halted.phrases(), ...unreadable];
  }

  async #takeOnce(assignment: Assignment, consumer: Consumer): Promise<void> {
    // Its tables may have been made anew since the start.
    const { database, ownership, replicas } = this.#options;
    const server = await database.claim();
    // Before anything is read: no older owner stores anything after this, so it stays true.
    const epoch = await ownership.begin(assignment, server, database.others);
    // After the epoch is recorded: a copy that begins later records an epoch above it, so that this writer is fenced.
    await database.requireFilled(server);
    // After the older statements have ended at each replica: what they have committed anywhere is here after this.
    await replicas?.takeOver();
    assignment.epoch = epoch;
    await this.#open(assignment, consumer, byTopic(this.#partitionsOf(assignment)));
  }

  async #open(assignment: Assignment, consumer: Consumer, partitions: Assignment['partitions']): Promise<void> {
    const { kafka, groupId, positions, replicas, readKnown } = this.#options;
    await this.#halted.record();
    // An operator may have chosen a position at another replica, before the halt was lifted that is seen here.
    await replicas?.readPositions();
    const { positions: known, halts: active } = await readKnown(assignment.epoch?.server);
    const inspected = await withAdmin(kafka, (admin) => inspectPartitions(admin, groupId, partitions, known));
    assignment.signal.throwIfAborted();
    const sound: { readonly partition: TopicPartition; readonly position: Position }[] = [];
    const unknown: NewPosition[] = [];
    const uncommitted: TopicPartitionOffsetAndMetadata[] = [];
    for (const { inspection, ...partition } of inspected) {
      const halt = active.get(nameOf(partition));
      if (halt) this.#halted.add(halt);
      else if (inspection.kind === 'gap') this.halt(assignment, consumer, partition, inspection.gap);
      else if (!assignment.isOpen(partition)) {
        const { position, committed } = inspection;
        sound.push({ partition, position });
        if (!known.has(nameOf(partition))) unknown.push({ ...partition, ...position, from: position.nextOffset });
        if (position.nextOffset !== committed) {
          const offset = String(position.nextOffset);
          uncommitted.push({ ...partition, offset, metadata: this.#options.database.id });
        }
      }
    }
    // A new partition has a position in ClickHouse before anything is committed. So one that has committed something
    // and has no position is not new: ClickHouse has lost what was stored.
    if (unknown.length > 0 && assignment.epoch) await positions.store(unknown, assignment.epoch);
    assignment.signal.throwIfAborted();
    // Where partitions go on is committed before they do. A writer may have ended between storing and committing: then
    // Kafka would show a lag until the next message. Committed any later, it could replace the newer offset of a batch.
    if (uncommitted.length > 0) await consumer.commitOffsets(uncommitted);
    assignment.signal.throwIfAborted();
    assignment.addCommitted(uncommitted);
    for (const { partition, position } of sound) {
      // Another inspection may have opened it meanwhile.
      if (!assignment.isOpen(partition)) this.#goOn(assignment, consumer, partition, position);
    }
    await this.#halted.record().catch(() => undefined);
  }

  #goOn(assignment: Assignment, consumer: Consumer, { topic, partition }: TopicPartition, position: Position): void {
    const offset = String(position.nextOffset);
    if (this.#halted.remove({ topic, partition })) {
      this.#options.logger.info({ topic, partition, offset }, 'a halted partition goes on');
    }
    assignment.open({ topic, partition }, position);
    consumer.seek({ topic, partition, offset });
    consumer.resume([{ topic, partitions: [partition] }]);
  }

  async #followOperators(assignment: Assignment, consumer: Consumer): Promise<void> {
    const { signal } = assignment;
    let committedAt = performance.now();
    while (!signal.aborted) {
      await sleep(POLL_MS, signal);
      if (signal.aborted) return;
      if (performance.now() - committedAt >= COMMIT_AGAIN_MS) {
        committedAt = performance.now();
        await this.#commitAgain(assignment, consumer);
        await this.#refuseForeignCommits(assignment);
      }
      try {
        await this.#followOnce(assignment, consumer);
        this.#unreadable = undefined;
      } catch (error) {
        this.#unreadable = 'the positions and halts in ClickHouse cannot be read';
        this.#options.logger.debug({ reason: (error as Error).message }, 'following the halts failed; retrying');
      }
    }
  }

  /**
   * Commits once more what was committed last. A commit whose connection broke may arrive after later ones, and Kafka takes
   * it: without this, the lag would be too high until the partition gets another message.
   */
  async #commitAgain({ committed }: Assignment, consumer: Consumer): Promise<void> {
    if (committed.length === 0) return;
    await consumer.commitOffsets([...committed]).catch((error: Error) => {
      this.#options.logger.debug({ reason: error.message }, 'committing again failed; retrying in a minute');
    });
  }

  /** @throws {DatabaseMismatch} when writers of another database commit offsets of the same group */
  async #refuseForeignCommits({ committed }: Assignment): Promise<void> {
    const { foreignCommits, lacks, database, logger } = this.#options;
    const found = await foreignCommits.look(committed).catch((error: Error) => {
      logger.debug({ reason: error.message }, 'reading the commits of the group failed; retrying in a minute');
      return undefined;
    });
    if (found?.losesMetadata) lacks.add('metadata');
    if (found?.foreign === undefined) return;
    throw new DatabaseMismatch(
      `the consumer group stores messages into two databases, each of which lacks the others: this one (${database.id}) and ` +
        `${found.foreign}; stop the writers of the wrong one, and check CLICKHOUSE_URL, or the addresses in CLICKHOUSE_SERVERS_FILE`,
    );
  }

  async #followOnce(assignment: Assignment, consumer: Consumer): Promise<void> {
    await this.#halted.record();
    if (assignment.epoch && this.#halted.isOver(assignment.epoch)) {
      // A newer epoch is recorded, and Kafka has not taken the partitions away: this writer takes them over again.
      await this.#takeOnce(assignment, consumer);
      return;
    }
    const before = this.#halted.snapshot();
    const open = this.#partitionsOf(assignment).filter((partition) => assignment.isOpen(partition));
    const found = await this.#options.readKnown(assignment.epoch?.server).catch(ifFenced);
    if (assignment.signal.aborted) return;
    if (!found) {
      this.#options.logger.error(
        'another server answers at the address of ClickHouse; taking the partitions over there',
      );
      for (const partition of open) stopStoring(assignment, consumer, partition);
      await this.#takeOnce(assignment, consumer);
      return;
    }
    const { positions: known, halts: active } = found;
    const lost = open.filter((partition) => !known.has(nameOf(partition)) && assignment.isOpen(partition));
    if (lost.length > 0) {
      this.#options.logger.error({ partitions: lost.map(nameOf) }, 'ClickHouse has lost the positions of partitions');
      for (const partition of lost) stopStoring(assignment, consumer, partition);
      // The epoch may be lost as well.
      await this.#takeOnce(assignment, consumer);
      return;
    }
    const resumed: TopicPartition[] = [];
    for (const { topic, partition } of this.#partitionsOf(assignment)) {
      const halt = active.get(nameOf({ topic, partition }));
      const isOpen = assignment.isOpen({ topic, partition });
      if (halt && isOpen) {
        stopStoring(assignment, consumer, { topic, partition });
        this.#halted.add(halt);
        this.#options.logger.warn({ topic, partition, reason: halt.reason }, 'an operator has halted the partition');
      }
      // A partition that had no leader when it was inspected is neither open nor halted: it is inspected again.
      const isUninspected = !isOpen && !this.#halted.has({ topic, partition });
      if (!halt && (isUninspected || this.#halted.isLifted({ topic, partition }, before))) {
        resumed.push({ topic, partition });
      }
    }
    if (resumed.length > 0) await this.#open(assignment, consumer, byTopic(resumed));
  }

  /** Returns those of the assigned partitions that the server stores. */
  #partitionsOf({ partitions }: Assignment): TopicPartition[] {
    const assigned = Object.entries(partitions).flatMap(([topic, numbers]) =>
      numbers.map((partition) => ({ topic, partition })),
    );
    return assigned.filter(({ partition }) => isInRange(this.#options.range, partition));
  }

  /** Retries until the work succeeds or the assignment is over. */
  async #retry(assignment: Assignment, failure: string, work: () => Promise<void>): Promise<void> {
    const { signal, generation } = assignment;
    await retry(work, {
      firstMs: 100,
      maxMs: 5_000,
      signal,
      onFailure: (error) => {
        if (ENDS_WRITER.some((type) => error instanceof type)) throw error;
        const fields = { reason: (error as Error).message, generation };
        if (!signal.aborted) this.#options.logger.warn(fields, `${failure}; retrying`);
      },
    }).catch((error) => {
      if (!signal.aborted) throw error;
    });
  }
}

function ifFenced(error: unknown): undefined {
  if (!(error instanceof Fenced)) throw error;
  return undefined;
}

function byTopic(partitions: readonly TopicPartition[]): Record<string, number[]> {
  const topics = Map.groupBy(partitions, ({ topic }) => topic);
  return Object.fromEntries([...topics].map(([topic, own]) => [topic, own.map(({ partition }) => partition)]));
}

function stopStoring(assignment: Assignment, consumer: Consumer, { topic, partition }: TopicPartition): void {
  consumer.pause([{ topic, partitions: [partition] }]);
  assignment.close({ topic, partition });
}
