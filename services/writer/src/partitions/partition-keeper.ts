import { withAdmin } from '@sluice/shared/kafka/topics';
import type { Logger } from '@sluice/shared/log';
import { retry, sleep } from '@sluice/shared/retry';
import type { Consumer, Kafka, TopicPartitionOffset } from 'kafkajs';
import type { Assignment } from '../consumer/assignment.ts';
import type { WriterMetrics } from '../metrics.ts';
import type { Ownership } from '../ownership/ownership.ts';
import { HaltedPartitions } from './halted-partitions.ts';
import type { Halts } from './halts.ts';
import { inspectPartitions } from './inspect-partitions.ts';
import type { LogFault } from './log-fault.ts';
import { nameOf, type Position, type TopicPartition } from './position.ts';
import type { Positions } from './positions.ts';

/** How often the halts are read, in milliseconds: the delay with which a running writer follows an operator's command. */
const POLL_MS = 1_000;

export interface PartitionKeeperOptions {
  readonly kafka: Kafka;
  readonly groupId: string;
  readonly ownership: Ownership;
  readonly positions: Positions;
  readonly halts: Halts;
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

  constructor(options: PartitionKeeperOptions) {
    this.#options = options;
    this.#halted = new HaltedPartitions(options.halts, options.metrics);
  }

  /**
   * Takes over a new assignment: becomes an owner, inspects the logs, and opens the partitions that are sound and not
   * halted. Retries until it succeeds, then follows operators, until the assignment is over.
   */
  async takeOver(assignment: Assignment, consumer: Consumer): Promise<void> {
    this.#halted.reset();
    await this.#retry(assignment, 'taking the partitions over failed', async () => {
      // First: no older owner stores anything after this, so what is read next stays true.
      const epoch = await this.#options.ownership.begin(assignment.generation, assignment.memberId);
      assignment.epoch = epoch;
      await this.#open(assignment, consumer, assignment.partitions);
    });
    await this.#followOperators(assignment, consumer);
  }

  /** Inspects a paused partition again, and opens or halts it. Retries until the assignment is over. */
  async reopen(assignment: Assignment, consumer: Consumer, { topic, partition }: TopicPartition): Promise<void> {
    await this.#retry(assignment, `inspecting ${nameOf({ topic, partition })} failed`, () =>
      this.#open(assignment, consumer, { [topic]: [partition] }),
    );
  }

  /** Stops storing one partition until an operator resumes it. The other partitions go on. */
  halt(assignment: Assignment, consumer: Consumer, { topic, partition }: TopicPartition, fault: LogFault): void {
    consumer.pause([{ topic, partitions: [partition] }]);
    assignment.close({ topic, partition });
    this.#halted.addNew({ topic, partition, ...fault });
    this.#options.logger.error(
      { topic, partition, reason: fault.reason },
      `${fault.detail}. The partition is halted; show it and resume it with: npm run writer -- status`,
    );
  }

  /** Returns the halted partitions of this writer as short phrases. */
  missing(): string[] {
    return this.#halted.phrases();
  }

  async #open(assignment: Assignment, consumer: Consumer, partitions: Assignment['partitions']): Promise<void> {
    const { kafka, groupId, positions, halts } = this.#options;
    await this.#halted.record();
    const [known, active] = await Promise.all([positions.read(), halts.active()]);
    const inspected = await withAdmin(kafka, (admin) => inspectPartitions(admin, groupId, partitions, known));
    assignment.signal.throwIfAborted();
    const sound: { readonly partition: TopicPartition; readonly position: Position }[] = [];
    const uncommitted: TopicPartitionOffset[] = [];
    for (const { inspection, ...partition } of inspected) {
      const halt = active.get(nameOf(partition));
      if (halt) this.#halted.add(halt);
      else if (inspection.kind === 'fault') this.halt(assignment, consumer, partition, inspection.fault);
      else if (!assignment.isOpen(partition)) {
        const { position, committed } = inspection;
        sound.push({ partition, position });
        if (position.nextOffset !== committed) uncommitted.push({ ...partition, offset: String(position.nextOffset) });
      }
    }
    // Where partitions go on is committed before they do. A writer may have ended between storing and committing: then
    // Kafka would show a lag until the next message. And where nothing is stored yet, this is all that tells later that
    // messages are gone. Committed any later, it could replace the newer offset of a batch.
    if (uncommitted.length > 0) await consumer.commitOffsets(uncommitted);
    assignment.signal.throwIfAborted();
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
    while (!signal.aborted) {
      await sleep(POLL_MS, signal);
      if (signal.aborted) return;
      await this.#followOnce(assignment, consumer).catch((error: Error) => {
        this.#options.logger.debug({ reason: error.message }, 'following the halts failed; retrying');
      });
    }
  }

  async #followOnce(assignment: Assignment, consumer: Consumer): Promise<void> {
    await this.#halted.record();
    const before = this.#halted.snapshot();
    const active = await this.#options.halts.active();
    if (assignment.signal.aborted) return;
    const resumed: Record<string, number[]> = {};
    for (const [topic, partitions] of Object.entries(assignment.partitions)) {
      for (const partition of partitions) {
        const halt = active.get(nameOf({ topic, partition }));
        const isOpen = assignment.isOpen({ topic, partition });
        if (halt && isOpen) {
          consumer.pause([{ topic, partitions: [partition] }]);
          assignment.close({ topic, partition });
          this.#halted.add(halt);
          this.#options.logger.warn({ topic, partition, reason: halt.reason }, 'an operator has halted the partition');
        }
        // A partition that had no leader when it was inspected is neither open nor halted: it is inspected again.
        const isUninspected = !isOpen && !this.#halted.has({ topic, partition });
        if (!halt && (isUninspected || this.#halted.isLifted({ topic, partition }, before))) {
          resumed[topic] = [...(resumed[topic] ?? []), partition];
        }
      }
    }
    if (Object.keys(resumed).length > 0) await this.#open(assignment, consumer, resumed);
  }

  /** Retries until the work succeeds or the assignment is over. */
  async #retry(assignment: Assignment, failure: string, work: () => Promise<void>): Promise<void> {
    const { signal, generation } = assignment;
    await retry(work, {
      firstMs: 100,
      maxMs: 5_000,
      signal,
      onFailure: (error) => {
        const fields = { reason: (error as Error).message, generation };
        if (!signal.aborted) this.#options.logger.warn(fields, `${failure}; retrying`);
      },
    }).catch((error) => {
      if (!signal.aborted) throw error;
    });
  }
}
