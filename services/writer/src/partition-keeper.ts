import { withAdmin } from '@sluice/shared/kafka/topics';
import type { Logger } from '@sluice/shared/log';
import { retry, sleep } from '@sluice/shared/retry';
import type { Consumer, Kafka } from 'kafkajs';
import type { Assignment } from './assignment.ts';
import type { Halt, Halts } from './halts.ts';
import type { WriterMetrics } from './metrics.ts';
import { type Fault, inspect } from './offset-guard.ts';
import type { Ownership } from './ownership.ts';
import { nameOf, type Place } from './place.ts';
import type { Positions } from './positions.ts';

/** How often the halts are read, in milliseconds: so soon a running writer heeds the operator. */
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

/** Decides which of the assigned partitions are stored, and from where. */
export interface PartitionKeeper {
  /**
   * Takes an assignment over, all of whose partitions are paused: becomes their owner, looks at their logs, and lets
   * those go on that are sound and not halted. Tries again until that succeeds or the assignment is over.
   */
  takeOver(assignment: Assignment, consumer: Consumer): Promise<void>;
  /** Looks again at a partition that has been paused. */
  reopen(assignment: Assignment, consumer: Consumer, topic: string, partition: number): Promise<void>;
  /** Stops storing a partition, until an operator resumes it; the others go on. */
  halt(assignment: Assignment, consumer: Consumer, topic: string, partition: number, fault: Fault): void;
  /** What is halted of the assigned partitions, each as a short phrase. */
  missing(): string[];
}

export function createPartitionKeeper(options: PartitionKeeperOptions): PartitionKeeper {
  const { kafka, groupId, ownership, positions, halts, logger, metrics } = options;
  /** The halted ones of the present assignment. */
  let halted = new Map<string, Halt>();
  /** Not in ClickHouse yet. */
  const unrecorded = new Map<string, Halt>();

  async function open(assignment: Assignment, consumer: Consumer, partitions: Assignment['partitions']): Promise<void> {
    await recordHalts();
    const [known, active] = await Promise.all([positions.read(), halts.active()]);
    const inspected = await withAdmin(kafka, (admin) => inspect(admin, groupId, partitions, known));
    assignment.signal.throwIfAborted();
    for (const { topic, partition, verdict } of inspected) {
      const halt = active.get(nameOf({ topic, partition }));
      if (halt) setHalted(halt);
      else if (verdict.kind === 'fault') haltPartition(assignment, consumer, topic, partition, verdict.fault);
      else goOn(assignment, consumer, topic, partition, verdict.place, verdict.committed);
    }
    await recordHalts().catch(() => undefined);
  }

  function goOn(
    assignment: Assignment,
    consumer: Consumer,
    topic: string,
    partition: number,
    place: Place,
    committed: bigint,
  ): void {
    const offset = String(place.nextOffset);
    const name = nameOf({ topic, partition });
    if (halted.delete(name)) logger.info({ topic, partition, offset }, 'a halted partition goes on');
    metrics.halted.remove({ topic, partition });
    assignment.open(topic, partition, place);
    consumer.seek({ topic, partition, offset });
    consumer.resume([{ topic, partitions: [partition] }]);
    if (committed >= 0n && committed !== place.nextOffset) commit(consumer, topic, partition, offset);
  }

  /** So that Kafka's figures tell what is to be stored; the position in ClickHouse decides all the same. */
  function commit(consumer: Consumer, topic: string, partition: number, offset: string): void {
    consumer.commitOffsets([{ topic, partition, offset }]).catch((error: Error) => {
      logger.warn({ reason: error.message, topic, partition, offset }, 'committing where to go on failed');
    });
  }

  function setHalted(halt: Halt): void {
    const { topic, partition } = halt;
    halted.set(nameOf(halt), halt);
    metrics.halted.set({ topic, partition }, 1);
  }

  function haltPartition(
    assignment: Assignment,
    consumer: Consumer,
    topic: string,
    partition: number,
    fault: Fault,
  ): void {
    const halt = { topic, partition, ...fault };
    consumer.pause([{ topic, partitions: [partition] }]);
    assignment.close(topic, partition);
    setHalted(halt);
    unrecorded.set(nameOf(halt), halt);
    logger.error({ topic, partition, reason: fault.reason }, `${fault.detail}; the partition is halted`);
  }

  /** Also called at intervals: where it fails, it is done later. */
  async function recordHalts(): Promise<void> {
    for (const [name, halt] of unrecorded) {
      await halts.record(halt);
      if (unrecorded.get(name) === halt) unrecorded.delete(name);
    }
  }

  /** Heeds what operators have halted and resumed. */
  async function follow(assignment: Assignment, consumer: Consumer): Promise<void> {
    await recordHalts();
    const before = new Map(halted);
    const active = await halts.active();
    if (assignment.signal.aborted) return;
    const resumed: Record<string, number[]> = {};
    for (const [topic, partitions] of Object.entries(assignment.partitions)) {
      for (const partition of partitions) {
        const name = nameOf({ topic, partition });
        const halt = active.get(name);
        if (halt && assignment.isOpen(topic, partition)) {
          consumer.pause([{ topic, partitions: [partition] }]);
          assignment.close(topic, partition);
          setHalted(halt);
          logger.warn({ topic, partition, reason: halt.reason }, 'the partition was halted');
        }
        // Those that had no leader when they were looked at are looked at again as well.
        const isClosed = !assignment.isOpen(topic, partition) && !halted.has(name);
        const isLifted = before.has(name) && before.get(name) === halted.get(name) && !unrecorded.has(name);
        if (!halt && (isClosed || isLifted)) resumed[topic] = [...(resumed[topic] ?? []), partition];
      }
    }
    if (Object.keys(resumed).length > 0) await open(assignment, consumer, resumed);
  }

  async function followWhileAssigned(assignment: Assignment, consumer: Consumer): Promise<void> {
    const { signal } = assignment;
    while (!signal.aborted) {
      await sleep(POLL_MS, signal);
      if (signal.aborted) return;
      await follow(assignment, consumer).catch((error: Error) => {
        logger.debug({ reason: error.message }, 'the halts cannot be read');
      });
    }
  }

  /** Tries again until it succeeds or the assignment is over. */
  async function keepTrying(assignment: Assignment, what: string, work: () => Promise<void>): Promise<void> {
    const { signal, generation } = assignment;
    await retry(work, {
      firstMs: 100,
      maxMs: 5_000,
      signal,
      onFailure(error) {
        if (!signal.aborted) logger.warn({ reason: (error as Error).message, generation }, `${what}; trying again`);
      },
    }).catch((error) => {
      if (!signal.aborted) throw error;
    });
  }

  return {
    async takeOver(assignment, consumer) {
      halted = new Map();
      metrics.halted.reset();
      await keepTrying(assignment, 'becoming an owner failed', async () => {
        // First: nothing of older owners is stored after this, so what is read below stays true.
        const epoch = await ownership.begin(assignment.generation, assignment.memberId);
        assignment.epoch = epoch;
        await open(assignment, consumer, assignment.partitions);
      });
      await followWhileAssigned(assignment, consumer);
    },
    async reopen(assignment, consumer, topic, partition) {
      await keepTrying(assignment, 'looking at a partition failed', () =>
        open(assignment, consumer, { [topic]: [partition] }),
      );
    },
    halt: haltPartition,
    missing: () =>
      [...halted.values()].map((halt) => `${nameOf(halt)} is halted (${halt.reason}): npm run writer -- status`),
  };
}
